/**
 * The body of a tool loop: one effect, whose safety was declared with the tool. What the tool says while it works (log
 * lines, facts of its own types) is recorded with its result.
 */

import { parseTarget, targetDifference } from '../base/approval-target.js';
import { LoopError, toLoopError } from '../base/errors.js';
import { withLazyProperty } from '../base/lazy-property.js';
import type { ActiveToolCall } from '../policy/restrictions.js';
import type { ApprovalTarget } from '../protocol/approval.js';
import type { Effect, EffectContext, Scope, TargetBinding } from '../protocol/body.js';
import type { Safety } from '../protocol/entry.js';
import type { Json } from '../protocol/json.js';
import type { PolicySpec, ToolSpec } from '../protocol/loop.js';
import { isVendorType, LOG_WRITTEN, type ToolNote } from '../views/trace.js';
import type { DefinitionOrigin } from './origin.js';
import { LoopServices, servicesOf, type TurnContext, turnIdOf } from './services.js';
import {
  type DescribeApproval,
  type ResolveTarget,
  splitImplementation,
  type ToolCallContext,
  type ToolFunction,
} from './tool-implementation.js';

export interface ToolBodyOptions {
  readonly id: string;
  readonly safety: Safety;
  readonly config: { readonly [name: string]: Json };
  readonly policy: PolicySpec | undefined;
  /** Tells this definition from others of its id. */
  readonly definitionFingerprint: string;
  /** What a person is asked before it runs, for a tool that has a say in it. */
  readonly describeApproval?: DescribeApproval | undefined;
  /** The mode that `describe` is given for the tool's own policy, whatever the mode of its agent. */
  readonly approvalMode?: string | undefined;
  /** Without a policy of its own it is asked about, unless the agent that has it allows it by name. */
  readonly asksByDefault?: boolean;
  /** The same, for one that is asked about unless its policy says otherwise; found when it is called. */
  readonly approvalDescriber?: ((scope: Scope) => DescribeApproval | undefined) | undefined;
  /** How to resolve what a call acts on, for a tool whose approvals are bound to it. */
  readonly targetResolver?: ((scope: Scope) => ResolveTarget | undefined) | undefined;
  /** The function is one of the house: what it is told need not stand being taken apart. */
  readonly isInternal?: boolean;
  /** The function for one call; for an approved one, what it may act on. */
  open(scope: Scope, approved: ApprovalTarget | undefined): Promise<ToolFunction> | ToolFunction;
}

type LogLevel = Parameters<ToolCallContext['log']>[0];

interface ToolOutcome {
  readonly output: Json;
  readonly notes?: readonly ToolNote[];
  /** What the tool streamed. */
  readonly said?: string;
}

const MAX_NOTES = 1000;
/** How much of what a tool streams is kept, in characters. */
const MAX_STREAMED_CHARS = 64 * 1024;

export function toolBody(parts: ToolBodyOptions): (input: Json, scope: Scope) => Promise<Json> {
  const {
    id,
    safety,
    definitionFingerprint,
    approvalDescriber,
    approvalMode,
    asksByDefault = false,
    targetResolver,
  } = parts;
  const asking: PolicySpec = { approval: 'ask', ...parts.policy };
  return (input, scope) => {
    const perform: Effect['perform'] = (given, performance) => runTool(parts, scope, given, performance);
    const asked = approvalDescriber?.(scope);
    const policy = asked === undefined ? parts.policy : asking;
    const describe = asked ?? parts.describeApproval;
    const binding = targetResolver && (() => targetBindingOf(parts, scope, targetResolver(scope)));
    const effect: Effect = {
      kind: 'tool',
      name: id,
      input,
      safety,
      perform,
      policy,
      definition: definitionFingerprint,
      describe,
      mode: approvalMode,
      asksByDefault,
      binding,
    };
    return scope.effect(effect).then((outcome) => (outcome as ToolOutcome).output);
  };
}

function targetBindingOf(
  parts: ToolBodyOptions,
  scope: Scope,
  find: ResolveTarget | undefined,
): TargetBinding | undefined {
  if (find === undefined) return undefined;
  const { id } = parts;
  const resolve: ResolveTarget = (input) => resolveCallTarget(id, find, input);
  return {
    resolve,
    perform: (approved) => async (given, performance) => {
      assertApprovedTarget(id, approved, await resolve(given));
      return runTool(parts, scope, given, performance, approved);
    },
  };
}

/** What a call acts on; TOOL_FAILED for a tool that answers with something else. */
async function resolveCallTarget(id: string, resolve: ResolveTarget, input: Json): Promise<ApprovalTarget | undefined> {
  const found = await resolve(input);
  if (found === undefined) return undefined;
  const target = parseTarget(found);
  if (target !== undefined) return target;
  throw new LoopError(
    'TOOL_FAILED',
    `"${id}" does not say what it acts on: a target needs a kind (program, file or directory) and a path.`,
    { tool: id },
  );
}

function assertApprovedTarget(
  id: string,
  approved: ApprovalTarget | undefined,
  found: ApprovalTarget | undefined,
): void {
  const difference = targetDifference(approved, found);
  if (difference === undefined) return;
  throw new LoopError('TOOL_NOT_ADMITTED', `"${id}" did not run: ${difference}. Ask again.`, { name: id });
}

/** A tool that a definition names by its implementation. */
export function toolFromImplementation(
  spec: ToolSpec,
  origin: DefinitionOrigin,
): Pick<ToolBodyOptions, 'open' | 'approvalDescriber' | 'targetResolver'> {
  const { scheme, target } = splitImplementation(spec.implementation);
  const { config = {} } = spec;
  const question: ToolBodyOptions['approvalDescriber'] = (scope) =>
    servicesOf(scope).implementations.get(scheme)?.approvalDescriber(target, origin, config);
  const resolve: ToolBodyOptions['targetResolver'] = (scope) =>
    servicesOf(scope).implementations.get(scheme)?.targetResolver(target, origin, config);
  const open: ToolBodyOptions['open'] = (scope, approved) => {
    const implementation = servicesOf(scope).implementations.get(scheme);
    if (implementation === undefined) {
      throw new LoopError(
        'TOOL_FAILED',
        `No tool can be run as "${spec.implementation}": "${scheme}" is not known here.`,
      );
    }
    return implementation.open(target, origin, config, approved);
  };
  return { open, approvalDescriber: question, targetResolver: resolve };
}

async function runTool(
  parts: ToolBodyOptions,
  scope: Scope,
  input: Json,
  performance: EffectContext,
  approved?: ApprovalTarget,
): Promise<ToolOutcome> {
  const telling = new RecordingToolCallContext(parts, scope, performance);
  const { notes } = telling;
  try {
    const opened = parts.open(scope, approved);
    const tool = typeof opened === 'function' ? opened : await opened;
    const output = ((await telling.withTimeout(
      tool(input, parts.isInternal === true ? telling : detachedContext(telling)),
    )) ?? null) as Json;
    const { streamedText } = telling;
    return streamedText === ''
      ? notes.length === 0
        ? { output }
        : { output, notes }
      : { output, notes, said: streamedText };
  } catch (thrown) {
    throw toToolError(parts.id, thrown, notes);
  }
}

/** What a tool is handed: it may take it apart, so nothing of it depends on how it is called. */
function detachedContext(telling: RecordingToolCallContext): ToolCallContext {
  const { callId, idempotencyKey, config, toolCallId } = telling;
  const call = {
    callId,
    idempotencyKey,
    config,
    signal: undefined as unknown as AbortSignal,
    toolCallId,
    log: (level: LogLevel, message: string) => telling.log(level, message),
    emit: (type: string, value?: Json) => telling.emit(type, value),
    delta: (text: string) => telling.delta(text),
  };
  return withLazyProperty(call, 'signal', () => telling.signal);
}

/** What a tool is told, and what it tells while it works. */
class RecordingToolCallContext implements ToolCallContext {
  readonly callId: string;
  readonly idempotencyKey: string;
  readonly config: ToolCallContext['config'];
  readonly notes: ToolNote[] = [];
  streamedText = '';
  private readonly toolId: string;
  private readonly effectContext: EffectContext;
  private readonly turnContext: TurnContext | undefined;
  /** What an agent sent it for. */
  private readonly activeToolCall: ActiveToolCall | undefined;
  /** Why the tool should stop, and how it hears of it, once it took too long. */
  private timeoutError: LoopError | undefined;
  private abortController: AbortController | undefined;

  constructor({ id, config }: ToolBodyOptions, scope: Scope, performance: EffectContext) {
    this.toolId = id;
    this.callId = scope.key;
    this.idempotencyKey = performance.idempotencyKey;
    this.config = config;
    this.effectContext = performance;
    this.turnContext = scope.context instanceof LoopServices ? scope.context.turnContext(turnIdOf(scope)) : undefined;
    this.activeToolCall = this.turnContext?.activeRestrictions?.activeToolCall(scope.key);
  }

  get signal(): AbortSignal {
    const { signal } = this.effectContext;
    if (this.activeToolCall === undefined || this.abortController !== undefined)
      return this.abortController?.signal ?? signal;
    const stop = new AbortController();
    this.abortController = stop;
    const { timeoutError } = this;
    if (timeoutError !== undefined || signal.aborted) stop.abort(timeoutError ?? signal.reason);
    else signal.addEventListener('abort', () => stop.abort(signal.reason), { once: true });
    return stop.signal;
  }

  get toolCallId(): string | undefined {
    return this.activeToolCall?.toolCallId;
  }

  /** What the tool gives back, within the time that the agent who called it allows. */
  withTimeout(work: unknown): unknown {
    const { activeToolCall } = this;
    if (activeToolCall === undefined || !isThenable(work)) return work;
    const watchdog = this.turnContext?.watchdog;
    if (watchdog === undefined) return work;
    return watchdog.withTimeout(activeToolCall.timeoutMs, work, () => {
      const message = `"${this.toolId}" did not end within ${activeToolCall.timeoutMs} ms.`;
      this.timeoutError = new LoopError('TIMEOUT', message, { retryable: true, timeoutMs: activeToolCall.timeoutMs });
      this.abortController?.abort(this.timeoutError);
      return this.timeoutError;
    });
  }

  log(level: LogLevel, message: string): void {
    this.addNote({ type: LOG_WRITTEN, value: { level: String(level), message: String(message) } });
  }

  emit(type: string, value?: Json): void {
    this.addNote(value === undefined ? { type: assertVendorType(type) } : { type: assertVendorType(type), value });
  }

  delta(text: string): void {
    const piece = String(text);
    if (this.streamedText.length < MAX_STREAMED_CHARS)
      this.streamedText += piece.slice(0, MAX_STREAMED_CHARS - this.streamedText.length);
    const { activeToolCall, turnContext } = this;
    // What comes after the end is a piece of nothing.
    if (activeToolCall === undefined || turnContext?.activeRestrictions?.activeToolCall(this.callId) !== activeToolCall)
      return;
    const { agentKey: generationId, toolCallId, toolName } = activeToolCall;
    turnContext.onLiveDelta?.({ kind: 'tool-output', text: piece, generationId, toolCallId, toolName });
  }

  private addNote(note: ToolNote): void {
    if (this.notes.length < MAX_NOTES) this.notes.push(note);
  }
}

/** Whether it has to be waited for. */
export function isThenable(work: unknown): work is PromiseLike<unknown> {
  return typeof (work as Partial<PromiseLike<unknown>> | null | undefined)?.then === 'function';
}

function assertVendorType(type: string): string {
  if (isVendorType(type)) return type;
  throw new LoopError(
    'VALUE_INVALID',
    `"${type}" cannot be an event of your own: use a namespace, like myorg.${type}.`,
  );
}

/** Whatever a tool throws is its failure; what it said before is told with it. */
function toToolError(id: string, thrown: unknown, notes: readonly ToolNote[]): LoopError {
  const known = toLoopError(thrown);
  const code = known.code === 'EXECUTION_FAILED' ? 'TOOL_FAILED' : known.code;
  const said = notes
    .filter(({ type }) => type === LOG_WRITTEN)
    .flatMap(({ value }) => (value === undefined ? [] : [value]));
  const base = known.data === undefined ? { tool: id } : { tool: id, ...(known.data as { [key: string]: Json }) };
  return new LoopError(code, known.message, said.length === 0 ? base : { ...base, log: said }, thrown);
}
