/**
 * Offers a loop as a tool of the AI SDK. Each tool call is a turn of a host, so it is validated, approved and journaled
 * like any other turn.
 *
 * Some providers number tool calls per conversation (`call_0`). A call is therefore identified by principal,
 * conversation, loop and tool call id together.
 */
import { randomUUID } from 'node:crypto';
import { compositeId } from '../../base/composite-id.js';
import { LoopError } from '../../base/errors.js';
import type { Ids } from '../../journal/clock.js';
import type { SchemaIssue, Validator } from '../../json/schema.js';
import type { DefinedLoop } from '../../loops/defined-loop.js';
import type { RegisteredLoop } from '../../loops/registry.js';
import type { Approval } from '../../protocol/approval.js';
import type { Json } from '../../protocol/json.js';
import { ApprovalRequiredError } from '../../protocol/tool.js';
import type { TraceEvent, TurnResult } from '../../protocol/trace.js';
import { type HostOption, hostOf } from './host-option.js';

/** The turn that a tool call starts. */
export interface ToolTurn {
  readonly loop: string | DefinedLoop;
  readonly version?: string;
  readonly input: unknown;
  readonly sessionId?: string;
  /** The idempotency key of the turn: a repeated tool call starts no second turn. */
  readonly key: string;
  readonly principal?: string;
}

/** The part of a host that a tool uses. */
export interface ToolHost {
  run(turn: ToolTurn, options: { readonly onEvent: (event: TraceEvent) => void }): Promise<TurnResult>;
  cancel(turnId: string, reason: string): Promise<boolean>;
  readonly archive: { approvals(sessionId: string): Promise<readonly Approval[]> };
  readonly registry: { find(id: string, version?: string): RegisteredLoop | undefined };
}

/** Options of `toAISDKTool`. */
export interface AISDKToolOptions {
  /** Runs the turns: a runtime made with `createRondo`, or a host. */
  readonly host: HostOption<ToolHost>;
  /**
   * The version of a loop that is given by its id.
   * @default the newest registered version, prereleases last
   */
  readonly version?: string;
  /**
   * The session of the turns, or a function that returns it for a call. A repeated tool call id in a session returns
   * the same turn, in any process. Without a session, a call is recognised as repeated only if it has the same list of
   * messages and the same tool object.
   * @default a new session for each call
   */
  readonly sessionId?: string | ((call: AISDKCall) => string);
  /**
   * The user on whose behalf the turns run, or a function that returns it for a call.
   * @default no principal
   */
  readonly principal?: string | ((call: AISDKCall) => string);
  /**
   * Creates ids for conversations without a session.
   * @default random UUIDs
   */
  readonly ids?: Pick<Ids, 'id'>;
}

/** What the AI SDK passes to a tool with a call. */
export interface AISDKCall {
  readonly toolCallId: string;
  readonly abortSignal?: AbortSignal | undefined;
  /** The messages before the call. Without a session, the list object identifies the conversation. */
  readonly messages?: readonly unknown[] | undefined;
  /** The option `experimental_context` of `generateText` or `streamText`. */
  readonly experimental_context?: unknown;
}

type ValidationResult<I> =
  | { readonly value: I; readonly issues?: undefined }
  | { readonly issues: readonly { readonly message: string; readonly path: readonly string[] }[] };

/** A Standard Schema with its JSON Schema. */
export interface AISDKSchema<I> {
  readonly '~standard': {
    readonly version: 1;
    readonly vendor: 'rondo';
    readonly types?: { readonly input: I; readonly output: I } | undefined;
    readonly validate: (value: unknown) => ValidationResult<I>;
    readonly jsonSchema: {
      readonly input: () => Record<string, unknown>;
      readonly output: () => Record<string, unknown>;
    };
  };
}

/** A tool for `generateText` and `streamText`. */
export interface AISDKTool<I, O> {
  readonly description: string;
  readonly inputSchema: AISDKSchema<I>;
  readonly execute: (input: I, call: AISDKCall) => Promise<O>;
}

const OPTION_KEYS: ReadonlySet<string> = new Set(['host', 'version', 'sessionId', 'principal', 'ids']);

/**
 * Offers a loop as a tool of the AI SDK. A repeated call of the same conversation and principal returns the turn of the
 * first one: no effect is performed twice. A call whose turn waits for an approval throws `ApprovalRequiredError`;
 * repeat the call when the approval is answered. Any other call that does not succeed throws a LoopError.
 *
 * @throws {LoopError} LOOP_NOT_FOUND if no loop with this id is registered.
 * @throws {TypeError} If an option is unknown.
 *
 * @example
 * const tools = { note: toAISDKTool(note, { host: rondo, sessionId: 'notes' }) };
 * await generateText({ model, tools, prompt: 'Note: call Ada.' });
 */
export function toAISDKTool<I = unknown, O = unknown>(
  loop: string | DefinedLoop<I, O>,
  options: AISDKToolOptions,
): AISDKTool<I, O> {
  const unknown = Object.keys(options).find((key) => !OPTION_KEYS.has(key));
  if (unknown !== undefined)
    throw new TypeError(`toAISDKTool has no option "${unknown}"; its options are ${[...OPTION_KEYS].join(', ')}.`);
  const host = hostOf(options.host);
  const { definition, input } = resolveLoop(loop, host, options.version);
  const { id, name, description = name } = definition;
  const bound: BoundTool = {
    ...options,
    host,
    loop: loop as DefinedLoop,
    loopId: id,
    conversations: new Conversations(options.ids),
  };
  return {
    description,
    inputSchema: standardSchemaOf<I>(input),
    execute: async (toolInput, call) => (await runTurn(bound, toolInput, call)) as O,
  };
}

interface BoundTool extends AISDKToolOptions {
  readonly host: ToolHost;
  readonly loop: string | DefinedLoop;
  readonly loopId: string;
  readonly conversations: Conversations;
}

/**
 * Assigns ids to conversations without a session: one for each list of messages, and one for all calls without a list.
 */
class Conversations {
  private readonly ids: Pick<Ids, 'id'>;
  private readonly defaultName: string;
  private readonly names = new WeakMap<object, string>();

  constructor(ids: Pick<Ids, 'id'> = { id: randomUUID }) {
    this.ids = ids;
    this.defaultName = ids.id();
  }

  nameOf({ messages }: AISDKCall): string {
    if (messages === undefined) return this.defaultName;
    const name = this.names.get(messages) ?? this.ids.id();
    this.names.set(messages, name);
    return name;
  }
}

function resolveLoop(
  loop: string | Pick<DefinedLoop, 'definition' | 'validators'>,
  host: ToolHost,
  version: string | undefined,
): Pick<RegisteredLoop, 'definition' | 'input'> {
  if (typeof loop !== 'string') return { definition: loop.definition, input: loop.validators.input };
  const registered = host.registry.find(loop, version);
  if (registered !== undefined) return registered;
  const reference = version === undefined ? loop : `${loop}@${version}`;
  throw new LoopError('LOOP_NOT_FOUND', `There is no loop "${reference}"; register it before you make it a tool.`, {
    loopId: loop,
  });
}

/** Returns the turn of a call. The host adds the principal and the session to the identity of the turn. */
function turnRequestOf(bound: BoundTool, input: unknown, call: AISDKCall): ToolTurn {
  const { loop, loopId, version, conversations } = bound;
  const [sessionId, principal] = [
    resolveOption(bound.sessionId, call, 'sessionId'),
    resolveOption(bound.principal, call, 'principal'),
  ];
  // guard: calls-bound-to-conversation
  const conversation = sessionId === undefined ? [conversations.nameOf(call)] : [];
  return {
    loop,
    input,
    key: compositeId('tool', loopId, call.toolCallId, ...conversation),
    ...(version !== undefined && { version }),
    ...(sessionId !== undefined && { sessionId }),
    ...(principal !== undefined && { principal }),
  };
}

/**
 * Returns the value of an option for a call. A function that returns no text is an error: the call must not become
 * anonymous.
 */
function resolveOption(option: AISDKToolOptions['principal'], call: AISDKCall, name: string): string | undefined {
  if (typeof option !== 'function') return option;
  const value: unknown = option(call);
  if (typeof value === 'string') return value;
  throw new TypeError(
    `The option "${name}" returned no text for the call ${call.toolCallId}; it must return a string.`,
  );
}

async function runTurn(bound: BoundTool, input: unknown, call: AISDKCall): Promise<unknown> {
  const { host } = bound;
  const { toolCallId, abortSignal } = call;
  abortSignal?.throwIfAborted();
  let turnId: string | undefined;
  const cancel = (): void => {
    if (turnId !== undefined) host.cancel(turnId, 'The caller aborted the tool call.').catch(() => {});
  };
  // The first event of a turn has the turn's own call id.
  const onEvent = ({ callId }: TraceEvent): void => {
    if (turnId !== undefined) return;
    turnId = callId;
    if (abortSignal?.aborted === true) cancel();
  };
  const turn = turnRequestOf(bound, input, call);
  abortSignal?.addEventListener('abort', cancel);
  try {
    return await outputOf(host, await host.run(turn, { onEvent }), toolCallId);
  } finally {
    abortSignal?.removeEventListener('abort', cancel);
  }
}

/** Returns the output of a successful turn. Throws ApprovalRequiredError or a LoopError for any other result. */
async function outputOf(host: ToolHost, result: TurnResult, toolCallId: string): Promise<unknown> {
  const { turnId, sessionId, loopId } = result;
  if (result.status === 'ok') return result.output;
  if (result.status === 'error' || result.status === 'cancelled') {
    const { code, message, details } = result.error;
    throw new LoopError(code, message, details);
  }
  if (result.status === 'stopped')
    throw new LoopError('BUDGET_EXHAUSTED', `"${loopId}" stopped early: ${result.reason}.`, { turnId });
  const { pending } = result;
  const pendingIds = new Set(pending.flatMap(({ kind, id }) => (kind === 'approval' && id !== undefined ? [id] : [])));
  const approval = (await host.archive.approvals(sessionId)).find(({ id }) => pendingIds.has(id));
  if (approval !== undefined) {
    const { tool: toolName, description, arguments: input } = approval;
    throw new ApprovalRequiredError({ toolName, description, input, toolCallId });
  }
  const kinds = [...new Set(pending.map(({ kind }) => kind))].join(', ');
  throw new LoopError('EXECUTION_FAILED', `"${loopId}" is waiting (${kinds}); the turn ${turnId} can be resumed.`, {
    turnId,
  });
}

function standardSchemaOf<I>(validator: Validator): AISDKSchema<I> {
  const jsonSchema = (): Record<string, unknown> => {
    const { schema } = validator;
    // Model providers accept only object schemas.
    return { type: 'object', ...(typeof schema === 'object' ? schema : {}) };
  };
  const validate = (value: unknown): ValidationResult<I> => {
    const issues = validator.issues(value as Json);
    return issues.length === 0 ? { value: value as I } : { issues: issues.map(standardIssueOf) };
  };
  return {
    '~standard': { version: 1, vendor: 'rondo', validate, jsonSchema: { input: jsonSchema, output: jsonSchema } },
  };
}

/** Converts an issue to Standard Schema, which has lists of keys instead of JSON pointers. */
function standardIssueOf({ path, message }: SchemaIssue): {
  readonly message: string;
  readonly path: readonly string[];
} {
  const keys = path.split('/').slice(1);
  return { message, path: keys.map((key) => key.replaceAll('~1', '/').replaceAll('~0', '~')) };
}
