/**
 * Where a check works: a fresh runtime behind the driver's interface, with every run recorded. A check reaches the
 * runtime through nothing else, so it cannot ask for more than the interface has.
 */
import { isObject, ownProperty } from '../base/own-property.js';
import type { CodeBody, LsemDriver, LsemResult, LsemRuntime, Profile, PromptPiece, ToolBody } from './driver.js';
import { CheckFailure, demand, isText, messageOf, NotApplicable, show } from './failure.js';
import { Recording } from './recording.js';

/** What a runtime may do without. */
export type OptionalMember = 'definition' | 'tool.custom' | 'systemPrompt' | 'code' | 'agent';

let customTools = 0;

export class Stage {
  /** What a reader should know of a check that passed. */
  readonly notes: string[] = [];
  /** The optional members that the check looked for. */
  readonly wanted = new Set<OptionalMember>();
  private readonly opened: LsemRuntime[] = [];
  private current: LsemRuntime | undefined;
  private closed = false;
  private readonly driver: LsemDriver;
  /** Every run of the judgement so far, of this check and of those before it. */
  readonly history: Recording[];

  constructor(driver: LsemDriver, history: Recording[]) {
    this.driver = driver;
    this.history = history;
  }

  get profile(): Omit<Profile, 'tool' | 'systemPrompt' | 'code' | 'agent'> & {
    readonly tool: Omit<Profile['tool'], 'custom'>;
  } {
    return this.driver.profile;
  }

  note(text: string): void {
    this.notes.push(text);
  }

  /** Goes on with a runtime that is empty again. */
  async fresh(): Promise<void> {
    if (this.closed) throw new CheckFailure('the check went on after it was given up');
    const opened = await this.driver.open();
    const { register, run } = Object(opened) as Partial<LsemRuntime>;
    const usable = typeof register === 'function' && typeof run === 'function';
    // guard: runtime-shape-demanded
    demand(usable, `open gave ${show(opened)}, not a runtime with register and run`);
    this.current = opened;
    this.opened.push(opened);
  }

  async register(...definitions: readonly unknown[]): Promise<void> {
    for (const definition of definitions) {
      const refusal = await this.refusal(definition);
      demand(refusal === undefined, `a valid definition was refused: ${refusal}, of ${show(definition)}`);
    }
  }

  /** Why a definition is refused; undefined when it was registered. */
  async refusal(definition: unknown): Promise<string | undefined> {
    const runtime = await this.runtime();
    try {
      await runtime.register(definition);
      return undefined;
    } catch (thrown) {
      return messageOf(thrown);
    }
  }

  /** What is no definition is refused when it is registered, or never gives a success: LSEM does not say when. */
  async refused(definition: unknown, what: string): Promise<void> {
    if ((await this.refusal(definition)) !== undefined) return;
    const id = ownProperty(definition, 'id');
    const run = isText(id) ? await this.attempt(id, {}) : undefined;
    const works = run === undefined || (run.refusal === undefined && run.succeeded);
    demand(!works, `${what} was accepted: ${show(definition)}`);
    this.note(`${what} was accepted when registered, and failed when it ran`);
  }

  /** The definition as the registry has it. */
  async readBack(id: string): Promise<unknown> {
    this.wanted.add('definition');
    const runtime = await this.runtime();
    if (runtime.definition === undefined) throw new NotApplicable('the driver cannot read a definition back');
    return runtime.definition(id);
  }

  /** A ToolSpec for a function; undefined where the runtime cannot have one. */
  custom(body: ToolBody): unknown {
    this.wanted.add('tool.custom');
    const { tool } = this.driver.profile;
    customTools += 1;
    return tool.custom?.(`suite-${customTools}`, body);
  }

  needCustom(body: ToolBody): unknown {
    const tool = this.custom(body);
    if (tool === undefined) throw new NotApplicable('the driver takes no functions as tools (tool.custom)');
    return tool;
  }

  /** A PromptSpec with a system prompt. */
  needSystemPrompt(pieces: readonly PromptPiece[], system: string): unknown {
    this.wanted.add('systemPrompt');
    const { profile } = this.driver;
    if (profile.systemPrompt === undefined) throw new NotApplicable('the driver has no system prompts (systemPrompt)');
    return profile.systemPrompt(pieces, system);
  }

  /** Registers a composite whose body is a function. */
  async registerCode(id: string, body: CodeBody): Promise<void> {
    this.wanted.add('code');
    const { profile } = this.driver;
    if (profile.code === undefined) throw new NotApplicable('the driver has no composites in code (code)');
    await this.register(profile.code(id, body));
  }

  /** Registers an agent whose model calls each of these loops once. */
  async registerAgent(id: string, loopIds: readonly string[]): Promise<void> {
    this.wanted.add('agent');
    const { profile } = this.driver;
    if (profile.agent === undefined) throw new NotApplicable('the driver has no agents (agent)');
    await this.register(profile.agent(id, loopIds));
  }

  /** Runs a loop whose body LSEM does not define; the caller judges its lifecycle, the census leaves it out. */
  async runBeyond(loopId: string, input: unknown): Promise<Recording> {
    const recording = await this.run(loopId, input, true);
    const { status, error } = recording.result;
    demand(recording.succeeded, `${loopId} should succeed: saw ${show({ status, error })}`);
    return recording;
  }

  /** Runs a loop, whatever comes of it. */
  async attempt(loopId: string, input: unknown, beyond = false): Promise<Recording> {
    const runtime = await this.runtime();
    const recording = new Recording(loopId);
    recording.beyond = beyond;
    this.history.push(recording);
    try {
      recording.end(resultOf(await runtime.run(loopId, input, (event) => recording.hear(event))));
    } catch (thrown) {
      recording.refuse(messageOf(thrown));
    }
    demand(!recording.endless, `the run of ${loopId} had ${recording.streamed.length} events and no end`);
    return recording;
  }

  /** Runs a loop that is registered: there is always a result. */
  async run(loopId: string, input: unknown, beyond = false): Promise<Recording> {
    const recording = await this.attempt(loopId, input, beyond);
    const { refusal } = recording;
    demand(refusal === undefined, `the run of ${loopId} threw instead of giving a result: ${refusal}`);
    return recording;
  }

  async succeed(loopId: string, input: unknown): Promise<Recording> {
    const recording = await this.run(loopId, input);
    const seen = show({ status: recording.result.status, output: recording.result.output, error: recording.error });
    demand(recording.succeeded, `${loopId} should succeed on ${show(input)}: saw ${seen}`);
    return recording;
  }

  async fail(loopId: string, input: unknown): Promise<Recording> {
    const recording = await this.run(loopId, input);
    const { status, output } = recording.result;
    const seen = show({ status, output });
    demand(recording.error !== undefined, `${loopId} should fail on ${show(input)}: saw no error, but ${seen}`);
    return recording;
  }

  /** Closes every runtime that the check opened; what that throws is worth a note, not a verdict. */
  async close(): Promise<void> {
    this.closed = true;
    for (const runtime of this.opened.splice(0)) {
      try {
        await runtime.close?.();
      } catch (thrown) {
        this.note(`closing the runtime failed: ${messageOf(thrown)}`);
      }
    }
  }

  private async runtime(): Promise<LsemRuntime> {
    if (this.current === undefined || this.closed) await this.fresh();
    if (this.current === undefined) throw new CheckFailure('the driver opened no runtime');
    return this.current;
  }
}

function resultOf(given: unknown): LsemResult {
  if (!isObject(given)) throw new CheckFailure(`it gave ${show(given)}, which is not a result`);
  return given as unknown as LsemResult;
}
