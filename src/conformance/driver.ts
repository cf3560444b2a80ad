/**
 * The interface between the conformance suite and a runtime of LSEM, the Loop Stack Execution Model. It consists of
 * register and run, and of a profile for everything that LSEM does not specify. Protocols, accounts and deployment are
 * details of the driver.
 */
import type { TraceEvent } from '../protocol/trace.js';

/** The result of a call: the members of LSEM's LoopResult that the suite reads. */
export interface LsemResult {
  readonly status: string;
  readonly output?: unknown;
  readonly error?: unknown;
  readonly trace: readonly TraceEvent[];
}

/** A registry and an executor. A runtime is empty when it is opened. */
export interface LsemRuntime {
  /** Registers a definition. Throws or rejects if the definition is refused. */
  register(definition: unknown): Promise<void> | void;
  /**
   * Returns a registered definition as JSON.
   * @default checks that read definitions back are not applicable
   */
  definition?(id: string): Promise<unknown> | unknown;
  /**
   * Runs a loop and passes every event of the call and its children to `onEvent`. Rejects only for an unknown loop id.
   */
  run(loopId: string, input: unknown, onEvent?: (event: TraceEvent) => void): Promise<LsemResult>;
  /** Releases the resources of the runtime. */
  close?(): Promise<void> | void;
}

/** What the body of a tool can do besides returning a value. */
export interface SuiteToolContext {
  /** Emits a `log` event. */
  log(level: string, message: string): void;
  /** Emits an event with a vendor's type. Absent if bodies cannot emit events. */
  emit?(type: string, payload: unknown): void;
}

/** The body of a tool, as a function of the suite. */
export type ToolBody = (input: unknown, toolContext: SuiteToolContext) => unknown;

/** What a composite in code can do. */
export interface CodeScope {
  /** Calls a loop by its id and returns its output. Rejects if the call fails. */
  call(loopId: string, input: unknown): Promise<unknown>;
  /** Calls several loops concurrently and returns their outputs in order. Absent if bodies cannot. */
  all?(calls: readonly { readonly loopId: string; readonly input: unknown }[]): Promise<readonly unknown[]>;
  /** Performs an effect outside of any loop. Absent if bodies cannot. */
  effect?(name: string, perform: () => unknown): Promise<unknown>;
}

/** The body of a composite in code, as a function of the suite. */
export type CodeBody = (input: unknown, scope: CodeScope) => Promise<unknown> | unknown;

/** A part of a prompt: a text, or a variable that is replaced by a string member of the input. */
export type PromptPiece = string | { readonly variable: string };

/** Values and functions of this runtime for everything that LSEM does not specify. */
export interface LsemProfile {
  /** Returns a PromptSpec whose rendered text is the joined pieces. */
  prompt(pieces: readonly PromptPiece[]): unknown;
  /** Returns a PromptSpec with a system prompt. Absent if prompts have none. */
  systemPrompt?(pieces: readonly PromptPiece[], system: string): unknown;
  /** Returns what `register` accepts for a composite in code. Absent if the runtime has none. */
  code?(id: string, body: CodeBody): unknown;
  /**
   * Returns what `register` accepts for an agent whose model calls each of these loops once with `{}`, all in one
   * reply, and then answers. Absent if the runtime has no agents.
   */
  agent?(id: string, loopIds: readonly string[]): unknown;
  /**
   * Returns what `register` accepts for a plan that calls each of these loops with its input, one after another, and
   * repeats that once: a loop of its plan language. Absent if the runtime has none.
   */
  plan?(id: string, loopIds: readonly string[]): unknown;
  readonly backend: {
    /**
     * A BackendRef that answers every prompt, with the backend and model that answer. Preferably, `ref` names no model.
     */
    readonly answering: { readonly ref: unknown; readonly id: string; readonly model: string };
    /** A BackendRef that exists and always fails. */
    readonly failing: unknown;
    /** A BackendRef that does not exist. */
    readonly unknown: unknown;
  };
  readonly tool: {
    /** A ToolSpec that returns its input. */
    readonly echo: unknown;
    /** A ToolSpec that exists and always fails. */
    readonly failing: unknown;
    /** A ToolSpec that does not exist. */
    readonly unknown: unknown;
    /** Returns a ToolSpec for a function of the suite, usable in every runtime of the driver. Names are unique. */
    custom?(name: string, body: ToolBody): unknown;
  };
  readonly path: {
    /** The path of the outer input in an inputMapping, such as `$.input`. */
    readonly input: string;
    /** Returns the path of the result that an earlier step bound to this name, such as `$.NAME`. */
    binding(name: string): string;
  };
}

/**
 * The driver of a runtime under test.
 *
 * @example
 * export default { name: 'my runtime', open: () => new MyRuntime(), profile } satisfies LsemDriver;
 */
export interface LsemDriver {
  /** The name of the runtime in the report. */
  readonly name: string;
  readonly profile: LsemProfile;
  /** Opens an empty runtime. Every check opens at least one. */
  open(): Promise<LsemRuntime> | LsemRuntime;
  /**
   * Checks that are known to fail, by id, with the reason. A declared failure that passes is reported as a failure.
   * @default none
   */
  readonly knownFailures?: { readonly [check: string]: string };
}
