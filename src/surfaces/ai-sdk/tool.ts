/**
 * A loop as a tool of the AI SDK. A call of it is a turn of our host, so gate, journal and durability hold whoever calls:
 * the SDK checks the input with our validator before it calls, and the host checks it again.
 *
 * Providers number calls anew in every conversation (`call_0`), so a call is identified by its principal, conversation, loop and id.
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

/** A turn that a call of the tool becomes. */
export interface ToolTurn {
  readonly loop: string | DefinedLoop;
  readonly version?: string;
  readonly input: unknown;
  readonly sessionId?: string;
  readonly key: string;
  readonly principal?: string;
}

/** What a tool needs of a host. */
export interface ToolHost {
  run(turn: ToolTurn, options: { readonly onEvent: (event: TraceEvent) => void }): Promise<TurnResult>;
  cancel(turnId: string, reason: string): Promise<boolean>;
  readonly archive: { approvals(sessionId: string): Promise<readonly Approval[]> };
  readonly registry: { find(id: string, version?: string): RegisteredLoop | undefined };
}

export interface AISDKToolOptions {
  readonly host: ToolHost;
  /** Of a loop that is named by its id. */
  readonly version?: string;
  /**
   * The conversation: the session that the turns are kept in, or how to find it for a call. The same call id in it is the same
   * turn, in any process. Without it each call has a session of its own, and a call is repeated only where the SDK repeats it:
   * with the same list of messages, by the same tool object.
   */
  readonly sessionId?: string | ((call: AISDKCall) => string);
  /** On whose behalf, or how to find that out for a call: one tool object may serve several users. */
  readonly principal?: string | ((call: AISDKCall) => string);
  /**
   * Names conversations that have no session.
   * @default random UUIDs
   */
  readonly ids?: Pick<Ids, 'id'>;
}

/** What the SDK says of a call. */
export interface AISDKCall {
  readonly toolCallId: string;
  readonly abortSignal?: AbortSignal | undefined;
  /** What was said before it: another list is another conversation. */
  readonly messages?: readonly unknown[] | undefined;
  /** What `generateText` and `streamText` were given under this name. */
  readonly experimental_context?: unknown;
}

type ValidationResult<I> =
  | { readonly value: I; readonly issues?: undefined }
  | { readonly issues: readonly { readonly message: string; readonly path: readonly string[] }[] };

/** A Standard Schema that can tell its JSON Schema. */
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

/** A tool as `generateText` and `streamText` take it. */
export interface AISDKTool<I, O> {
  readonly description: string;
  readonly inputSchema: AISDKSchema<I>;
  readonly execute: (input: I, call: AISDKCall) => Promise<O>;
}

const OPTION_KEYS: ReadonlySet<string> = new Set(['host', 'version', 'sessionId', 'principal', 'ids']);

/**
 * Makes a tool of a loop. The same call of the same conversation and principal is the same turn, so a call that is repeated does
 * nothing twice; a turn that waits for an approval throws `ApprovalRequiredError`, and the call can be repeated once that was
 * answered.
 */
export function toAISDKTool<I = unknown, O = unknown>(
  loop: string | DefinedLoop<I, O>,
  options: AISDKToolOptions,
): AISDKTool<I, O> {
  const unknown = Object.keys(options).find((key) => !OPTION_KEYS.has(key));
  if (unknown !== undefined)
    throw new TypeError(`toAISDKTool has no option "${unknown}"; it has ${[...OPTION_KEYS].join(', ')}.`);
  const { definition, input } = resolveLoop(loop, options);
  const { id, name, description = name } = definition;
  const bound: BoundTool = {
    ...options,
    loop: loop as DefinedLoop,
    loopId: id,
    conversations: new Conversations(options.ids),
  };
  return {
    description,
    inputSchema: standardSchemaOf<I>(input),
    execute: async (given, call) => (await runTurn(bound, given, call)) as O,
  };
}

interface BoundTool extends AISDKToolOptions {
  readonly loop: string | DefinedLoop;
  readonly loopId: string;
  readonly conversations: Conversations;
}

/** Names for conversations that have no session: each list of messages is one, and so are all calls without a list. */
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
  { host, version }: AISDKToolOptions,
): Pick<RegisteredLoop, 'definition' | 'input'> {
  if (typeof loop !== 'string') return { definition: loop.definition, input: loop.validators.input };
  const found = host.registry.find(loop, version);
  if (found !== undefined) return found;
  const named = version === undefined ? loop : `${loop}@${version}`;
  throw new LoopError('LOOP_NOT_FOUND', `There is no loop "${named}" to make a tool of; register it first.`, {
    loopId: loop,
  });
}

/** The turn that a call is. The host makes the principal and the session part of its identity. */
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

/** An option that is given, or found for a call. One that finds nothing is an error: the call must not become nobody's. */
function resolveOption(option: AISDKToolOptions['principal'], call: AISDKCall, name: string): string | undefined {
  if (typeof option !== 'function') return option;
  const found: unknown = option(call);
  if (typeof found === 'string') return found;
  throw new TypeError(`The option "${name}" found nothing for the call ${call.toolCallId}; it must return text.`);
}

async function runTurn(bound: BoundTool, input: unknown, call: AISDKCall): Promise<unknown> {
  const { host } = bound;
  const { toolCallId, abortSignal } = call;
  abortSignal?.throwIfAborted();
  let turnId: string | undefined;
  const cancel = (): void => {
    if (turnId !== undefined) host.cancel(turnId, 'Who called the tool does not want it any more.').catch(() => {});
  };
  // The first event is of the turn itself.
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

async function outputOf(host: ToolHost, result: TurnResult, toolCallId: string): Promise<unknown> {
  const { status, output, error, reason, turnId, sessionId, loopId, pending = [] } = result;
  if (status === 'ok') return output;
  if (status === 'error') throw new LoopError(error?.code ?? 'EXECUTION_FAILED', error?.message ?? '', error?.details);
  if (status === 'stopped') {
    throw new LoopError('BUDGET_EXHAUSTED', `"${loopId}" stopped short: ${reason ?? 'a limit was reached'}.`, {
      turnId,
    });
  }
  const asked = new Set(pending.flatMap(({ kind, id }) => (kind === 'approval' && id !== undefined ? [id] : [])));
  const approval = (await host.archive.approvals(sessionId)).find(({ id }) => asked.has(id));
  if (approval !== undefined) {
    const { tool: toolName, description, arguments: input } = approval;
    throw new ApprovalRequiredError({ toolName, description, input, toolCallId });
  }
  const kinds = [...new Set(pending.map(({ kind }) => kind))].join(', ');
  throw new LoopError('EXECUTION_FAILED', `"${loopId}" waits (${kinds}); turn ${turnId} can be resumed.`, { turnId });
}

function standardSchemaOf<I>(validator: Validator): AISDKSchema<I> {
  const shown = (): Record<string, unknown> => {
    const { schema } = validator;
    // Providers take nothing but objects.
    return { type: 'object', ...(typeof schema === 'object' ? schema : {}) };
  };
  const validate = (value: unknown): ValidationResult<I> => {
    const flaws = validator.issues(value as Json);
    return flaws.length === 0 ? { value: value as I } : { issues: flaws.map(issueOf) };
  };
  return {
    '~standard': { version: 1, vendor: 'rondo', validate, jsonSchema: { input: shown, output: shown } },
  };
}

function issueOf({ path, message }: SchemaIssue): { readonly message: string; readonly path: readonly string[] } {
  const names = path.split('/').slice(1);
  return { message, path: names.map((name) => name.replaceAll('~1', '/').replaceAll('~0', '~')) };
}
