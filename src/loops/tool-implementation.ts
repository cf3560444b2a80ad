/** The port to tools: what stands behind the `implementation` of a tool loop. */
import type { ApprovalTarget } from '../protocol/approval.js';
import type { Json } from '../protocol/json.js';
import type { DefinitionOrigin } from './origin.js';

/** What a tool is told beside its input. */
export interface ToolCallContext {
  readonly callId: string;
  /** The same for every attempt, in any process. */
  readonly idempotencyKey: string;
  /** Aborted when the call is cancelled or has timed out. */
  readonly signal: AbortSignal;
  readonly config: { readonly [name: string]: Json };
  /** Writes a line for people into the trace. */
  log(level: 'debug' | 'info' | 'warn' | 'error', message: string): void;
  /** Streams a piece of what the tool puts out to whoever watches; the whole of it is kept with the result, in bounds. */
  delta(text: string): void;
  /** The model's id of the call that this is part of, when an agent makes it. */
  readonly toolCallId?: string | undefined;
  /** Adds an event of a type in a namespace of one's own to the trace. */
  emit(type: string, value?: Json): void;
}

/** A tool ready to be called; what it throws becomes TOOL_FAILED. */
export type ToolFunction = (input: Json, call: ToolCallContext) => Promise<unknown> | unknown;

/** Words for the person who is asked, made of the arguments; null when nobody need be asked about these. */
export type DescribeApproval = (
  input: Json,
  context: { readonly mode?: string },
) => ApprovalDescription | Promise<ApprovalDescription>;
type ApprovalDescription = string | null | undefined;

/** What a call acts on right now; undefined for a tool whose definition and arguments say all of it. */
export type ResolveTarget = (input: Json) => Promise<ApprovalTarget | undefined>;

/** One way to implement tools, named by what stands before the colon. */
export interface ToolImplementation {
  readonly scheme: string;
  /** Why this cannot be run from there, or undefined; asked when a definition is registered, touches nothing. */
  unavailableReason(
    target: string,
    origin: DefinitionOrigin,
    config: { readonly [name: string]: Json },
  ): string | undefined;
  /** What is asked before the tool runs, of one that asks unless its policy says otherwise; undefined for all others. */
  approvalDescriber(
    target: string,
    origin: DefinitionOrigin,
    config: { readonly [name: string]: Json },
  ): DescribeApproval | undefined;
  /** How to resolve what a call acts on: an approval is bound to it. */
  targetResolver(
    target: string,
    origin: DefinitionOrigin,
    config: { readonly [name: string]: Json },
  ): ResolveTarget | undefined;
  /** The tool for one call. With `approved` it acts on that and on nothing else, or throws TOOL_NOT_ADMITTED. */
  open(
    target: string,
    origin: DefinitionOrigin,
    config: { readonly [name: string]: Json },
    approved?: ApprovalTarget,
  ): Promise<ToolFunction>;
}

/** What stands before the first colon, and what behind it. */
export function splitImplementation(text: string): { readonly scheme: string; readonly target: string } {
  const colon = text.indexOf(':');
  return { scheme: text.slice(0, colon), target: text.slice(colon + 1) };
}
