/**
 * The context of one check of conformance to the LSEM specification: a new runtime of the driver, with every run
 * recorded. Checks access the runtime only through this class, so they cannot require more than the driver interface
 * offers.
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

/** An optional member of the driver interface. */
type OptionalDriverMember = 'definition' | 'tool.custom' | 'systemPrompt' | 'code' | 'agent' | 'plan';

let customToolCount = 0;

/** The context of one check. */
export class CheckContext {
  /** Remarks for the reader of the report. */
  readonly notes: string[] = [];
  /** The optional members of the driver that the check has asked for, whether the driver has them or not. */
  readonly requestedOptionalMembers = new Set<OptionalDriverMember>();
  private readonly openedRuntimes: LsemRuntime[] = [];
  private currentRuntime: LsemRuntime | undefined;
  private isClosed = false;
  private readonly driver: LsemDriver;
  /** All runs of the suite so far, of this check and of earlier ones. */
  readonly suiteRuns: RecordedRun[];

  constructor(driver: LsemDriver, history: RecordedRun[]) {
    this.driver = driver;
    this.suiteRuns = history;
  }

  /** The profile of the driver. Its type omits the members that the methods below wrap. */
  get profile(): Omit<LsemProfile, 'tool' | 'systemPrompt' | 'code' | 'agent' | 'plan'> & {
    readonly tool: Omit<LsemProfile['tool'], 'custom'>;
  } {
    return this.driver.profile;
  }

  /** Adds a remark for the reader of the report. */
  addNote(text: string): void {
    this.notes.push(text);
  }

  /**
   * Opens a new, empty runtime, which further calls use. Earlier runtimes stay open until the check ends. Fails after
   * `close`, because the check then continues after its time limit.
   */
  async openFreshRuntime(): Promise<void> {
    if (this.isClosed) throw new CheckFailure('the check continued after its time limit');
    const runtime = await this.driver.open();
    const { register, run } = Object(runtime) as Partial<LsemRuntime>;
    const isRuntime = typeof register === 'function' && typeof run === 'function';
    // guard: runtime-shape-checked
    assertThat(isRuntime, `open returned ${describeValue(runtime)}, not a runtime with register and run`);
    this.currentRuntime = runtime;
    this.openedRuntimes.push(runtime);
  }

  /** Registers valid definitions. Fails the check if one of them is refused. */
  async register(...definitions: readonly unknown[]): Promise<void> {
    for (const definition of definitions) {
      const refusal = await this.tryRegister(definition);
      assertThat(refusal === undefined, `a valid definition was refused: ${refusal}, of ${describeValue(definition)}`);
    }
  }

  /** Registers a definition. Returns the reason if it is refused; undefined if it was registered. */
  async tryRegister(definition: unknown): Promise<string | undefined> {
    const runtime = await this.openRuntime();
    try {
      await runtime.register(definition);
      return undefined;
    } catch (thrown) {
      return messageOf(thrown);
    }
  }

  /**
   * Fails unless an invalid definition is refused when registered, or its run with `{}` fails. LSEM does not specify
   * which.
   */
  async assertRefused(definition: unknown, what: string): Promise<void> {
    if ((await this.tryRegister(definition)) !== undefined) return;
    const id = ownProperty(definition, 'id');
    const run = isNonEmptyString(id) ? await this.tryRun(id, {}) : undefined;
    const isAccepted = run === undefined || (run.refusalReason === undefined && run.hasSucceeded);
    assertThat(!isAccepted, `${what} was accepted: ${describeValue(definition)}`);
    this.addNote(`${what} was accepted when registered, and failed when it ran`);
  }

  /** Returns a definition as the runtime has registered it. Throws NotApplicableError if the driver cannot read it. */
  async readBack(id: string): Promise<unknown> {
    this.requestedOptionalMembers.add('definition');
    const runtime = await this.openRuntime();
    if (runtime.definition === undefined) throw new NotApplicableError('the driver cannot read a definition back');
    return runtime.definition(id);
  }

  /** Returns a ToolSpec for a function; undefined if the driver does not support it. */
  customTool(body: ToolBody): unknown {
    this.requestedOptionalMembers.add('tool.custom');
    const { tool } = this.driver.profile;
    customToolCount += 1;
    return tool.custom?.(`suite-${customToolCount}`, body);
  }

  /** Returns a ToolSpec for a function. Throws NotApplicableError if the driver does not support it. */
  requireCustomTool(body: ToolBody): unknown {
    const tool = this.customTool(body);
    if (tool === undefined) throw new NotApplicableError('the driver has no custom tools (tool.custom)');
    return tool;
  }

  /** Returns a PromptSpec with a system prompt. Throws NotApplicableError if the driver does not support it. */
  requirePromptWithSystem(pieces: readonly PromptPiece[], system: string): unknown {
    this.requestedOptionalMembers.add('systemPrompt');
    const { profile } = this.driver;
    if (profile.systemPrompt === undefined)
      throw new NotApplicableError('the driver has no system prompts (systemPrompt)');
    return profile.systemPrompt(pieces, system);
  }

  /** Registers a composite whose body is a function. Throws NotApplicableError if the driver does not support it. */
  async registerCode(id: string, body: CodeBody): Promise<void> {
    this.requestedOptionalMembers.add('code');
    const { profile } = this.driver;
    if (profile.code === undefined) throw new NotApplicableError('the driver has no composites in code (code)');
    await this.register(profile.code(id, body));
  }

  /**
   * Registers an agent whose model calls each of these loops once. Throws NotApplicableError if it is not supported.
   */
  async registerAgent(id: string, loopIds: readonly string[]): Promise<void> {
    this.requestedOptionalMembers.add('agent');
    const { profile } = this.driver;
    if (profile.agent === undefined) throw new NotApplicableError('the driver has no agents (agent)');
    await this.register(profile.agent(id, loopIds));
  }

  /** Registers a plan that calls each of these loops twice. Throws NotApplicableError if it is not supported. */
  async registerPlan(id: string, loopIds: readonly string[]): Promise<void> {
    this.requestedOptionalMembers.add('plan');
    const { profile } = this.driver;
    if (profile.plan === undefined) throw new NotApplicableError('the driver has no plans (plan)');
    await this.register(profile.plan(id, loopIds));
  }

  /**
   * Runs a loop whose body LSEM does not define; the run must succeed. LIF-11, which compares all runs with the
   * lifecycle, skips it, so the caller checks its lifecycle.
   */
  async runOutsideLsem(loopId: string, input: unknown): Promise<RecordedRun> {
    const recording = await this.run(loopId, input, true);
    const { status, error } = recording.result;
    assertThat(recording.hasSucceeded, `${loopId} should succeed: saw ${describeValue({ status, error })}`);
    return recording;
  }

  /**
   * Runs a loop and records its result, or the error that the run threw. Fails the check if the run emits too many
   * events.
   */
  async tryRun(loopId: string, input: unknown, isOutsideLsem = false): Promise<RecordedRun> {
    const runtime = await this.openRuntime();
    const recording = new RecordedRun(loopId);
    recording.isOutsideLsem = isOutsideLsem;
    this.suiteRuns.push(recording);
    try {
      recording.setResult(toLsemResult(await runtime.run(loopId, input, (event) => recording.addEvent(event))));
    } catch (thrown) {
      recording.setRefusal(messageOf(thrown));
    }
    assertThat(!recording.isEndless, `the run of ${loopId} had ${recording.streamedEvents.length} events and no end`);
    return recording;
  }

  /** Runs a loop and fails the check if the run throws instead of returning a result. */
  async run(loopId: string, input: unknown, isOutsideLsem = false): Promise<RecordedRun> {
    const recording = await this.tryRun(loopId, input, isOutsideLsem);
    const { refusalReason } = recording;
    assertThat(
      refusalReason === undefined,
      `the run of ${loopId} threw instead of returning a result: ${refusalReason}`,
    );
    return recording;
  }

  /** Runs a loop and fails the check unless it succeeds. */
  async runExpectingSuccess(loopId: string, input: unknown): Promise<RecordedRun> {
    const recording = await this.run(loopId, input);
    const actual = describeValue({
      status: recording.result.status,
      output: recording.result.output,
      error: recording.error,
    });
    assertThat(recording.hasSucceeded, `${loopId} should succeed on ${describeValue(input)}: saw ${actual}`);
    return recording;
  }

  /** Runs a loop and fails the check unless its result has an error. */
  async runExpectingFailure(loopId: string, input: unknown): Promise<RecordedRun> {
    const recording = await this.run(loopId, input);
    const { status, output } = recording.result;
    const actual = describeValue({ status, output });
    assertThat(
      recording.error !== undefined,
      `${loopId} should fail on ${describeValue(input)}: saw no error, but ${actual}`,
    );
    return recording;
  }

  /** Closes every runtime of the check. An error adds a note and does not fail the check. */
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

function toLsemResult(value: unknown): LsemResult {
  if (!isObject(value)) throw new CheckFailure(`it returned ${describeValue(value)}, which is not a result`);
  return value as unknown as LsemResult;
}
