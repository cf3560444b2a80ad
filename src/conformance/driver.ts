/**
 * The interface behind which any LSEM runtime can be judged: nothing but register, run and what LSEM leaves open.
 * It knows no wire, no accounts, no deployment and no page; a driver for a remote runtime hides those behind it.
 */
import type { TraceEvent } from '../protocol/trace.js';

/** How a call ended, as far as LSEM says what a result holds. */
export interface LsemResult {
  readonly status: string;
  readonly output?: unknown;
  readonly error?: unknown;
  readonly trace: readonly TraceEvent[];
}

/** A registry and an executor, empty when they are opened. */
export interface LsemRuntime {
  /** Throws or rejects when the definition is refused. */
  register(definition: unknown): Promise<void> | void;
  /** The definition as JSON; without it, what needs a read-back is not judged. */
  definition?(id: string): Promise<unknown> | unknown;
  /** Hands over every event of the call and of its children as it is emitted. Rejects only for an unknown loop id. */
  run(loopId: string, input: unknown, onEvent?: (event: TraceEvent) => void): Promise<LsemResult>;
  close?(): Promise<void> | void;
}

/** What the body of a tool can do beside returning. */
export interface SuiteToolContext {
  log(level: string, message: string): void;
  /** Emits an event of a vendor's type; absent where bodies cannot. */
  emit?(type: string, payload: unknown): void;
}

/** A tool whose body is a function of the suite. */
export type ToolBody = (input: unknown, voice: SuiteToolContext) => unknown;

/** What a composite whose body is code can do. */
export interface CodeScope {
  /** Calls a loop by its id: its output, or a rejection. */
  call(loopId: string, input: unknown): Promise<unknown>;
  /** Calls several loops side by side: their outputs in the order of the list. Absent where bodies cannot. */
  all?(calls: readonly { readonly loopId: string; readonly input: unknown }[]): Promise<readonly unknown[]>;
  /** Does something outside of any loop, as the runtime has it. Absent where bodies cannot. */
  effect?(name: string, perform: () => unknown): Promise<unknown>;
}

/** A composite whose body is a function of the suite. */
export type CodeBody = (input: unknown, scope: CodeScope) => Promise<unknown> | unknown;

/** A piece of a prompt: a text, or the member of the input (a string) that stands there. */
export type PromptPiece = string | { readonly variable: string };

/** What LSEM leaves open, as this runtime fills it. */
export interface LsemProfile {
  /** A PromptSpec whose rendered text is the pieces joined. */
  prompt(pieces: readonly PromptPiece[]): unknown;
  /** The same with a system prompt; absent where prompts have none. */
  systemPrompt?(pieces: readonly PromptPiece[], system: string): unknown;
  /** What `register` takes for a composite of this id whose body is code; absent where there is no such thing. */
  code?(id: string, body: CodeBody): unknown;
  /**
   * What `register` takes for an agent of this id: its model calls each of these loops once, with `{}`, all of them in
   * one reply, and then answers. Absent where there are no agents.
   */
  agent?(id: string, loopIds: readonly string[]): unknown;
  readonly backend: {
    /** A BackendRef that answers every prompt; `id` and `model` are what really answers. Best if `ref` names no model. */
    readonly answering: { readonly ref: unknown; readonly id: string; readonly model: string };
    /** A BackendRef that is known and always fails. */
    readonly failing: unknown;
    /** A BackendRef that names nothing. */
    readonly unknown: unknown;
  };
  readonly tool: {
    /** A ToolSpec that returns its input. */
    readonly echo: unknown;
    /** A ToolSpec that is known and always fails. */
    readonly failing: unknown;
    /** A ToolSpec that names nothing. */
    readonly unknown: unknown;
    /** A ToolSpec for a function of the suite, usable in every runtime of the driver; `name` is new each time. */
    custom?(name: string, body: ToolBody): unknown;
  };
  readonly path: {
    /** The path of the outer input in an inputMapping, such as `$.input`. */
    readonly input: string;
    /** The path of the result that an earlier step bound to this name, such as `$.NAME`. */
    binding(name: string): string;
  };
}

/** A runtime to be judged. */
export interface LsemDriver {
  readonly name: string;
  readonly profile: LsemProfile;
  open(): Promise<LsemRuntime> | LsemRuntime;
  /** Checks that are known to fail, by id, each with the reason. One that does not fail is reported as a failure. */
  readonly knownFailures?: { readonly [check: string]: string };
}
