/** The port to tools: how the `implementation` of a tool loop is run. */
import type { ApprovalTarget } from '../protocol/approval.js';
import type { Confinement } from '../protocol/body.js';
import type { Json } from '../protocol/json.js';
import type { DefinitionOrigin } from './origin.js';

/** The context of one tool call, passed to the tool with its input. */
export interface ToolCallContext {
  /** The key of the call in the journal. */
  readonly callId: string;
  /** The same for every attempt, in any process. Pass it to systems that accept an idempotency key. */
  readonly idempotencyKey: string;
  /** Aborted when the call is cancelled or has timed out. */
  readonly signal: AbortSignal;
  /** The `config` of the tool's definition. */
  readonly config: { readonly [name: string]: Json };
  /** Under a grant: the directories and hosts that the call may use. */
  readonly confinement?: Confinement | undefined;
  /** Adds a log line to the trace. At most 1000 log lines and custom events of a call are recorded. */
  log(level: 'debug' | 'info' | 'warn' | 'error', message: string): void;
  /**
   * Streams a piece of output to subscribers. The first 64 Ki characters of all pieces are recorded with the result.
   */
  delta(text: string): void;
  /** The model's id of the tool call that this call belongs to; undefined outside of an agent. */
  readonly toolCallId?: string | undefined;
  /**
   * Adds a custom event to the trace. Throws VALUE_INVALID unless its type has a namespace, such as `myorg.indexed`.
   */
  emit(type: string, value?: Json): void;
}

/**
 * Performs a tool call and returns the output. An error that it throws becomes TOOL_FAILED, unless it is a LoopError
 * with a code other than EXECUTION_FAILED.
 */
export type ToolFunction = (input: Json, call: ToolCallContext) => Promise<unknown> | unknown;

/**
 * Returns the text that the approver reads, or null if a call with this input needs no approval. Without a text, the
 * approver reads a general question.
 */
export type DescribeApproval = (
  input: Json,
  context: { readonly mode?: string },
) => ApprovalDescription | Promise<ApprovalDescription>;
type ApprovalDescription = string | null | undefined;

/**
 * Returns the current target of a call: the program, file or directory that it acts on. Returns undefined if the
 * definition and the arguments determine the target completely.
 */
export type ResolveTarget = (input: Json) => Promise<ApprovalTarget | undefined>;

/** A way to run tools, selected by the scheme of `implementation`, such as `exec` in `exec:./run.sh`. */
export interface ToolImplementation {
  /** The part of `implementation` before the colon. */
  readonly scheme: string;
  /** Returns why the tool cannot run, or undefined. Called when a definition is registered; it has no side effects. */
  unavailableReason(
    target: string,
    origin: DefinitionOrigin,
    config: { readonly [name: string]: Json },
  ): string | undefined;
  /**
   * Returns the function that describes approvals of a tool that requires approval by default; undefined for other
   * tools.
   */
  approvalDescriber(
    target: string,
    origin: DefinitionOrigin,
    config: { readonly [name: string]: Json },
  ): DescribeApproval | undefined;
  /**
   * Returns the function that resolves the target of a call, to which an approval is bound; undefined for other tools.
   */
  targetResolver(
    target: string,
    origin: DefinitionOrigin,
    config: { readonly [name: string]: Json },
  ): ResolveTarget | undefined;
  /** Opens the tool for one call. With `approved`, it acts on exactly that target or throws TOOL_NOT_ADMITTED. */
  open(
    target: string,
    origin: DefinitionOrigin,
    config: { readonly [name: string]: Json },
    approved?: ApprovalTarget,
  ): Promise<ToolFunction>;
}

/** Splits `scheme:target` at the first colon. The text must contain one. */
export function splitImplementation(text: string): { readonly scheme: string; readonly target: string } {
  const colon = text.indexOf(':');
  return { scheme: text.slice(0, colon), target: text.slice(colon + 1) };
}
