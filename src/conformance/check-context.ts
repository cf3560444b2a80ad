/**
 * Where a check works: a fresh runtime behind the driver's interface, with every run recorded. A check reaches the
 * runtime through nothing else, so it cannot ask for more than the interface has.
 */
import { isObject, ownProperty } from '../base/own-property.js';
import {
  assertThat,
  CheckFailure,
  describeValue,
  isNonEmptyString,
  messageOf,
  NotApplicableError,
} from './assertions.js';
import type { CodeBody, LsemDriver, LsemProfile, LsemResult, LsemRuntime, PromptPiece, ToolBody } from './driver.js';
import { RecordedRun } from './recorded-run.js';

/** What a runtime may do without. */
export type OptionalDriverMember = 'definition' | 'tool.custom' | 'systemPrompt' | 'code' | 'agent';

let customToolCount = 0;

export class CheckContext {
  /** What a reader should know of a check that passed. */
  readonly notes: string[] = [];
  /** The optional members that the check looked for. */
  readonly usedOptionalMembers = new Set<OptionalDriverMember>();
  private readonly openedRuntimes: LsemRuntime[] = [];
  private currentRuntime: LsemRuntime | undefined;
  private isClosed = false;
  private readonly driver: LsemDriver;
  /** Every run of the judgement so far, of this check and of those before it. */
  readonly recordedRuns: RecordedRun[];

  constructor(driver: LsemDriver, history: RecordedRun[]) {
    this.driver = driver;
    this.recordedRuns = history;
  }

  get profile(): Omit<LsemProfile, 'tool' | 'systemPrompt' | 'code' | 'agent'> & {
    readonly tool: Omit<LsemProfile['tool'], 'custom'>;
  } {
    return this.driver.profile;
  }

  addNote(text: string): void {
    this.notes.push(text);
  }

  /** Goes on with a runtime that is empty again. */
  async openFreshRuntime(): Promise<void> {
    if (this.isClosed) throw new CheckFailure('the check went on after it was given up');
    const opened = await this.driver.open();
    const { register, run } = Object(opened) as Partial<LsemRuntime>;
    const usable = typeof register === 'function' && typeof run === 'function';
    // guard: runtime-shape-demanded
    assertThat(usable, `open gave ${describeValue(opened)}, not a runtime with register and run`);
    this.currentRuntime = opened;
    this.openedRuntimes.push(opened);
  }

  async register(...definitions: readonly unknown[]): Promise<void> {
    for (const definition of definitions) {
      const refusal = await this.registrationRefusal(definition);
      assertThat(refusal === undefined, `a valid definition was refused: ${refusal}, of ${describeValue(definition)}`);
    }
  }

  /** Why a definition is refused; undefined when it was registered. */
  async registrationRefusal(definition: unknown): Promise<string | undefined> {
    const runtime = await this.openRuntime();
    try {
      await runtime.register(definition);
      return undefined;
    } catch (thrown) {
      return messageOf(thrown);
    }
  }

  /** What is no definition is refused when it is registered, or never gives a success: LSEM does not say when. */
  async assertRefused(definition: unknown, what: string): Promise<void> {
    if ((await this.registrationRefusal(definition)) !== undefined) return;
    const id = ownProperty(definition, 'id');
    const run = isNonEmptyString(id) ? await this.tryRun(id, {}) : undefined;
    const works = run === undefined || (run.refusalReason === undefined && run.hasSucceeded);
    assertThat(!works, `${what} was accepted: ${describeValue(definition)}`);
    this.addNote(`${what} was accepted when registered, and failed when it ran`);
  }

  /** The definition as the registry has it. */
  async readBack(id: string): Promise<unknown> {
    this.usedOptionalMembers.add('definition');
    const runtime = await this.openRuntime();
    if (runtime.definition === undefined) throw new NotApplicableError('the driver cannot read a definition back');
    return runtime.definition(id);
  }

  /** A ToolSpec for a function; undefined where the runtime cannot have one. */
  customTool(body: ToolBody): unknown {
    this.usedOptionalMembers.add('tool.custom');
    const { tool } = this.driver.profile;
    customToolCount += 1;
    return tool.custom?.(`suite-${customToolCount}`, body);
  }

  requireCustomTool(body: ToolBody): unknown {
    const tool = this.customTool(body);
    if (tool === undefined) throw new NotApplicableError('the driver takes no functions as tools (tool.custom)');
    return tool;
  }

  /** A PromptSpec with a system prompt. */
  requireSystemPrompt(pieces: readonly PromptPiece[], system: string): unknown {
    this.usedOptionalMembers.add('systemPrompt');
    const { profile } = this.driver;
    if (profile.systemPrompt === undefined)
      throw new NotApplicableError('the driver has no system prompts (systemPrompt)');
    return profile.systemPrompt(pieces, system);
  }

  /** Registers a composite whose body is a function. */
  async registerCode(id: string, body: CodeBody): Promise<void> {
    this.usedOptionalMembers.add('code');
    const { profile } = this.driver;
    if (profile.code === undefined) throw new NotApplicableError('the driver has no composites in code (code)');
    await this.register(profile.code(id, body));
  }

  /** Registers an agent whose model calls each of these loops once. */
  async registerAgent(id: string, loopIds: readonly string[]): Promise<void> {
    this.usedOptionalMembers.add('agent');
    const { profile } = this.driver;
    if (profile.agent === undefined) throw new NotApplicableError('the driver has no agents (agent)');
    await this.register(profile.agent(id, loopIds));
  }

  /** Runs a loop whose body LSEM does not define; the caller judges its lifecycle, the census leaves it out. */
  async runBeyondLsem(loopId: string, input: unknown): Promise<RecordedRun> {
    const recording = await this.run(loopId, input, true);
    const { status, error } = recording.result;
    assertThat(recording.hasSucceeded, `${loopId} should succeed: saw ${describeValue({ status, error })}`);
    return recording;
  }

  /** Runs a loop, whatever comes of it. */
  async tryRun(loopId: string, input: unknown, beyond = false): Promise<RecordedRun> {
    const runtime = await this.openRuntime();
    const recording = new RecordedRun(loopId);
    recording.isBeyondLsem = beyond;
    this.recordedRuns.push(recording);
    try {
      recording.setResult(toLsemResult(await runtime.run(loopId, input, (event) => recording.addEvent(event))));
    } catch (thrown) {
      recording.setRefusal(messageOf(thrown));
    }
    assertThat(!recording.isEndless, `the run of ${loopId} had ${recording.streamedEvents.length} events and no end`);
    return recording;
  }

  /** Runs a loop that is registered: there is always a result. */
  async run(loopId: string, input: unknown, beyond = false): Promise<RecordedRun> {
    const recording = await this.tryRun(loopId, input, beyond);
    const { refusalReason } = recording;
    assertThat(refusalReason === undefined, `the run of ${loopId} threw instead of giving a result: ${refusalReason}`);
    return recording;
  }

  async runExpectingSuccess(loopId: string, input: unknown): Promise<RecordedRun> {
    const recording = await this.run(loopId, input);
    const seen = describeValue({
      status: recording.result.status,
      output: recording.result.output,
      error: recording.error,
    });
    assertThat(recording.hasSucceeded, `${loopId} should succeed on ${describeValue(input)}: saw ${seen}`);
    return recording;
  }

  async runExpectingFailure(loopId: string, input: unknown): Promise<RecordedRun> {
    const recording = await this.run(loopId, input);
    const { status, output } = recording.result;
    const seen = describeValue({ status, output });
    assertThat(
      recording.error !== undefined,
      `${loopId} should fail on ${describeValue(input)}: saw no error, but ${seen}`,
    );
    return recording;
  }

  /** Closes every runtime that the check opened; what that throws is worth a note, not a verdict. */
  async close(): Promise<void> {
    this.isClosed = true;
    for (const runtime of this.openedRuntimes.splice(0)) {
      try {
        await runtime.close?.();
      } catch (thrown) {
        this.addNote(`closing the runtime failed: ${messageOf(thrown)}`);
      }
    }
  }

  private async openRuntime(): Promise<LsemRuntime> {
    if (this.currentRuntime === undefined || this.isClosed) await this.openFreshRuntime();
    if (this.currentRuntime === undefined) throw new CheckFailure('the driver opened no runtime');
    return this.currentRuntime;
  }
}

function toLsemResult(given: unknown): LsemResult {
  if (!isObject(given)) throw new CheckFailure(`it gave ${describeValue(given)}, which is not a result`);
  return given as unknown as LsemResult;
}
