/**
 * A loop as a tool of the AI SDK. A call of it is a turn of our host, so gate, journal and durability hold whoever calls:
 * the SDK checks the input with our validator before it calls, and the host checks it again.
 */
import { LoopError } from '../../journal/errors.js';
import type { DefinedLoop } from '../../loops/defined.js';
import type { Registered } from '../../loops/registry.js';
import type { Flaw, Validator } from '../../loops/schema.js';
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
  readonly registry: { find(id: string, version?: string): Registered | undefined };
}

export interface AISDKToolOptions {
  readonly host: ToolHost;
  /** Of a loop that is named by its id. */
  readonly version?: string;
  /** Where the turns are kept; a session for each call, unless told. Ids of calls are unique within it. */
  readonly sessionId?: string;
  /** On whose behalf. */
  readonly principal?: string;
}

/** What the SDK says of a call. */
export interface AISDKCall {
  readonly toolCallId: string;
  readonly abortSignal?: AbortSignal | undefined;
}

type Judged<I> =
  | { readonly value: I; readonly issues?: undefined }
  | { readonly issues: readonly { readonly message: string; readonly path: readonly string[] }[] };

/** A Standard Schema that can tell its JSON Schema. */
export interface AISDKSchema<I> {
  readonly '~standard': {
    readonly version: 1;
    readonly vendor: 'rondo';
    readonly types?: { readonly input: I; readonly output: I } | undefined;
    readonly validate: (value: unknown) => Judged<I>;
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

const OPTIONS: ReadonlySet<string> = new Set(['host', 'version', 'sessionId', 'principal']);

/**
 * Makes a tool of a loop. The same call id is the same turn, so a call that is repeated does nothing twice; a turn that
 * waits for an approval throws `ApprovalRequiredError`, and the call can be repeated once that was answered.
 */
export function toAISDKTool<I = unknown, O = unknown>(
  loop: string | DefinedLoop<I, O>,
  options: AISDKToolOptions,
): AISDKTool<I, O> {
  const unknown = Object.keys(options).find((key) => !OPTIONS.has(key));
  if (unknown !== undefined)
    throw new TypeError(`toAISDKTool has no option "${unknown}"; it has ${[...OPTIONS].join(', ')}.`);
  const { definition, input } = foundOf(loop, options);
  const { id, name, description = name } = definition;
  return {
    description,
    inputSchema: schemaOf<I>(input),
    execute: async (given, call) => (await turnOf({ ...options, loop: loop as DefinedLoop, id }, given, call)) as O,
  };
}

interface Bound extends AISDKToolOptions {
  readonly loop: string | DefinedLoop;
  readonly id: string;
}

function foundOf(
  loop: string | Pick<DefinedLoop, 'definition' | 'ends'>,
  { host, version }: AISDKToolOptions,
): Pick<Registered, 'definition' | 'input'> {
  if (typeof loop !== 'string') return { definition: loop.definition, input: loop.ends.input };
  const found = host.registry.find(loop, version);
  if (found !== undefined) return found;
  const named = version === undefined ? loop : `${loop}@${version}`;
  throw new LoopError('LOOP_NOT_FOUND', `There is no loop "${named}" to make a tool of; register it first.`, {
    loopId: loop,
  });
}

async function turnOf(bound: Bound, input: unknown, { toolCallId, abortSignal }: AISDKCall): Promise<unknown> {
  const { host, loop, id, version, sessionId, principal } = bound;
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
  const turn: ToolTurn = {
    loop,
    input,
    key: `tool:${encodeURIComponent(id)}:${toolCallId}`,
    ...(version !== undefined && { version }),
    ...(sessionId !== undefined && { sessionId }),
    ...(principal !== undefined && { principal }),
  };
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

function schemaOf<I>(validator: Validator): AISDKSchema<I> {
  const shown = (): Record<string, unknown> => {
    const { schema } = validator;
    // Providers take nothing but objects.
    return { type: 'object', ...(typeof schema === 'object' ? schema : {}) };
  };
  const validate = (value: unknown): Judged<I> => {
    const flaws = validator.flaws(value as Json);
    return flaws.length === 0 ? { value: value as I } : { issues: flaws.map(issueOf) };
  };
  return {
    '~standard': { version: 1, vendor: 'rondo', validate, jsonSchema: { input: shown, output: shown } },
  };
}

function issueOf({ path, message }: Flaw): { readonly message: string; readonly path: readonly string[] } {
  const names = path.split('/').slice(1);
  return { message, path: names.map((name) => name.replaceAll('~1', '/').replaceAll('~0', '~')) };
}
