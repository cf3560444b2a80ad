/**
 * Tool loops: each call is one effect with the declared safety of the tool. Log lines, custom events and streamed output
 * of the tool are recorded with its result.
 */

import { parseTarget, targetDifference } from '../base/approval-target.js';
import { LoopError, toLoopError } from '../base/errors.js';
import { withLazyProperty } from '../base/lazy-property.js';
import { runtimeEffect } from '../journal/runtime-effects.js';
import type { ActiveToolCall } from '../policy/restrictions.js';
import type { ApprovalTarget } from '../protocol/approval.js';
import type { Effect, EffectContext, Leaf, Scope, TargetBinding } from '../protocol/body.js';
import type { Safety } from '../protocol/entry.js';
import type { Json } from '../protocol/json.js';
import type { PolicySpec, ToolSpec } from '../protocol/loop.js';
import { isThenable } from '../protocol/thenable.js';
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

/** The options of `toolLeaf`. */
export interface ToolLeafOptions {
  readonly id: string;
  readonly safety: Safety;
  readonly config: { readonly [name: string]: Json };
  readonly policy: PolicySpec | undefined;
  /** What runs the tool: the scheme of its implementation, or `code`. @default 'code' */
  readonly boundary?: string;
  /** The scopes that the tool requires of a grant. */
  readonly scopes?: readonly string[] | undefined;
  /** Distinguishes definitions with the same id. Approvals are bound to it. */
  readonly definitionFingerprint: string;
  /** The source text of a function in code; the answer cache keys on it. */
  readonly source?: string;
  /** Returns the text that the approver reads, or null if a call needs no approval. */
  readonly describeApproval?: DescribeApproval | undefined;
  /** The mode for `describeApproval` under the tool's own policy, whatever the mode of its agent. */
  readonly approvalMode?: string | undefined;
  /**
   * True if the tool needs approval without a policy of its own, unless its agent allows it by name.
   * @default false
   */
  readonly asksByDefault?: boolean;
  /**
   * Called for each call. Returns the function that describes the approval of a tool that needs approval unless its
   * policy says otherwise; undefined for other tools.
   */
  readonly approvalDescriber?: ((scope: Scope) => DescribeApproval | undefined) | undefined;
  /** Called for each call. Returns the function that resolves the target to which approvals of the tool are bound. */
  readonly targetResolver?: ((scope: Scope) => ResolveTarget | undefined) | undefined;
  /**
   * True if the function is part of Rondo and does not destructure or spread its context.
   * @default false
   */
  readonly isInternal?: boolean;
  /** Returns the function for one call. `approved` is the target that the approval of the call is bound to, if any. */
  open(scope: Scope, approved: ApprovalTarget | undefined): Promise<ToolFunction> | ToolFunction;
}

type LogLevel = Parameters<ToolCallContext['log']>[0];

/** The recorded result of the effect. */
interface ToolOutcome {
  readonly output: Json;
  readonly notes?: readonly ToolNote[];
  /** The recorded part of the streamed output. */
  readonly streamedOutput?: string;
}

/** Upper bound on the recorded log lines and custom events of one attempt. Further ones are dropped. */
const MAX_NOTES = 1000;
/** Upper bound on the recorded part of the streamed output. */
const MAX_STREAMED_CHARS = 64 * 1024;

/** Returns the effect of the calls of a tool loop. */
export function toolLeaf(options: ToolLeafOptions): Leaf<Json> {
  const {
    id,
    safety,
    definitionFingerprint,
    source,
    approvalDescriber,
    approvalMode,
    asksByDefault = false,
    targetResolver,
    boundary = 'code',
    scopes,
  } = options;
  const askPolicy: PolicySpec = { approval: 'ask', ...options.policy };
  const toEffect: Leaf<Json>['effect'] = (input, scope) => {
    const perform: Effect['perform'] = (args, context) => runTool(options, scope, args, context);
    const describeByDefault = approvalDescriber?.(scope);
    const policy = describeByDefault === undefined ? options.policy : askPolicy;
    const describe = describeByDefault ?? options.describeApproval;
    const binding = targetResolver && (() => targetBindingOf(options, scope, targetResolver(scope)));
    return runtimeEffect({
      kind: 'tool',
      name: id,
      input,
      safety,
      perform,
      policy,
      definition: definitionFingerprint,
      source,
      describe,
      mode: approvalMode,
      asksByDefault,
      binding,
      boundary,
      scopes,
    });
  };
  return { effect: toEffect, outputMember: 'output' };
}

function targetBindingOf(
  options: ToolLeafOptions,
  scope: Scope,
  resolveUnchecked: ResolveTarget | undefined,
): TargetBinding | undefined {
  if (resolveUnchecked === undefined) return undefined;
  const { id } = options;
  const resolve: ResolveTarget = (input) => resolveCallTarget(id, resolveUnchecked, input);
  return {
    resolve,
    perform: (approved) => async (args, context) => {
      assertApprovedTarget(id, approved, await resolve(args));
      return runTool(options, scope, args, context, approved);
    },
  };
}

/** Resolves the target of a call. Throws TOOL_FAILED if the tool returns an invalid target. */
async function resolveCallTarget(id: string, resolve: ResolveTarget, input: Json): Promise<ApprovalTarget | undefined> {
  const resolved = await resolve(input);
  if (resolved === undefined) return undefined;
  const target = parseTarget(resolved);
  if (target !== undefined) return target;
  throw new LoopError(
    'TOOL_FAILED',
    `The approval target of "${id}" is invalid: it needs a kind (program, file or directory) and a path.`,
    { tool: id },
  );
}

/** Throws TOOL_NOT_ADMITTED if the current target differs from the approved one. */
function assertApprovedTarget(
  id: string,
  approved: ApprovalTarget | undefined,
  current: ApprovalTarget | undefined,
): void {
  const difference = targetDifference(approved, current);
  if (difference === undefined) return;
  throw new LoopError('TOOL_NOT_ADMITTED', `"${id}" did not run: ${difference}. Ask again.`, { name: id });
}

/** Returns the options of a tool that a JSON definition refers to by its `implementation`. */
export function toolFromImplementation(
  spec: ToolSpec,
  origin: DefinitionOrigin,
): Pick<ToolLeafOptions, 'open' | 'approvalDescriber' | 'targetResolver' | 'boundary' | 'scopes'> {
  const { scheme, target } = splitImplementation(spec.implementation);
  const { config = {} } = spec;
  const approvalDescriber: ToolLeafOptions['approvalDescriber'] = (scope) =>
    servicesOf(scope).implementations.get(scheme)?.approvalDescriber(target, origin, config);
  const targetResolver: ToolLeafOptions['targetResolver'] = (scope) =>
    servicesOf(scope).implementations.get(scheme)?.targetResolver(target, origin, config);
  const open: ToolLeafOptions['open'] = (scope, approved) => {
    const implementation = servicesOf(scope).implementations.get(scheme);
    if (implementation === undefined) {
      throw new LoopError(
        'TOOL_FAILED',
        `The tool "${spec.implementation}" cannot run: "${scheme}:" is not a known scheme here.`,
      );
    }
    return implementation.open(target, origin, config, approved);
  };
  const boundary = scheme === 'https' ? 'http' : scheme;
  return { open, approvalDescriber, targetResolver, boundary, scopes: spec.scopes };
}

async function runTool(
  options: ToolLeafOptions,
  scope: Scope,
  input: Json,
  effectContext: EffectContext,
  approved?: ApprovalTarget,
): Promise<ToolOutcome> {
  const context = new RecordingToolCallContext(options, scope, effectContext);
  const { notes } = context;
  try {
    const opened = options.open(scope, approved);
    const tool = typeof opened === 'function' ? opened : await opened;
    const work = tool(input, options.isInternal === true ? context : detachedContext(context));
    const output = ((await context.withTimeout(work)) ?? null) as Json;
    const { streamedText } = context;
    return streamedText === ''
      ? notes.length === 0
        ? { output }
        : { output, notes }
      : { output, notes, streamedOutput: streamedText };
  } catch (thrown) {
    throw toToolError(options.id, thrown, notes);
  }
}

/** Returns a plain object whose functions do not depend on `this`, so that a tool may destructure or spread it. */
function detachedContext(context: RecordingToolCallContext): ToolCallContext {
  const { callId, idempotencyKey, config, toolCallId, confinement } = context;
  const call = {
    callId,
    idempotencyKey,
    config,
    confinement,
    signal: undefined as unknown as AbortSignal,
    toolCallId,
    log: (level: LogLevel, message: string) => context.log(level, message),
    emit: (type: string, value?: Json) => context.emit(type, value),
    delta: (text: string) => context.delta(text),
  };
  return withLazyProperty(call, 'signal', () => context.signal);
}

/** The context of one tool call. It collects notes and streamed output, and enforces the timeout of the agent. */
class RecordingToolCallContext implements ToolCallContext {
  readonly callId: string;
  readonly idempotencyKey: string;
  readonly config: ToolCallContext['config'];
  readonly confinement: ToolCallContext['confinement'];
  readonly notes: ToolNote[] = [];
  streamedText = '';
  private readonly toolId: string;
  private readonly effectContext: EffectContext;
  private readonly turnContext: TurnContext | undefined;
  /** The tool call of an agent that this call belongs to. */
  private readonly activeToolCall: ActiveToolCall | undefined;
  /** Set once the call has timed out. */
  private timeoutError: LoopError | undefined;
  /** Created when the tool of an agent reads `signal`. */
  private abortController: AbortController | undefined;

  constructor({ id, config }: ToolLeafOptions, scope: Scope, effectContext: EffectContext) {
    this.toolId = id;
    this.callId = scope.key;
    this.idempotencyKey = effectContext.idempotencyKey;
    this.config = config;
    this.confinement = effectContext.confinement;
    this.effectContext = effectContext;
    this.turnContext = scope.context instanceof LoopServices ? scope.context.turnContext(turnIdOf(scope)) : undefined;
    this.activeToolCall = this.turnContext?.activeRestrictions?.activeToolCall(scope.key);
  }

  get signal(): AbortSignal {
    const { signal } = this.effectContext;
    if (this.activeToolCall === undefined || this.abortController !== undefined)
      return this.abortController?.signal ?? signal;
    const controller = new AbortController();
    this.abortController = controller;
    const { timeoutError } = this;
    if (timeoutError !== undefined || signal.aborted) controller.abort(timeoutError ?? signal.reason);
    else signal.addEventListener('abort', () => controller.abort(signal.reason), { once: true });
    return controller.signal;
  }

  get toolCallId(): string | undefined {
    return this.activeToolCall?.toolCallId;
  }

  /**
   * Settles like `work`, or rejects with TIMEOUT after the tool timeout of the agent. The timeout applies only to
   * promises, and only to tool calls of agents.
   */
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
    // Deltas after the end of the call are not streamed.
    if (activeToolCall === undefined || turnContext?.activeRestrictions?.activeToolCall(this.callId) !== activeToolCall)
      return;
    const { agentKey: generationId, toolCallId, toolName } = activeToolCall;
    turnContext.onLiveDelta?.({ kind: 'tool-output', text: piece, generationId, toolCallId, toolName });
  }

  private addNote(note: ToolNote): void {
    if (this.notes.length < MAX_NOTES) this.notes.push(note);
  }
}

/** Returns the type. Throws VALUE_INVALID unless it has a namespace. */
function assertVendorType(type: string): string {
  if (isVendorType(type)) return type;
  throw new LoopError(
    'VALUE_INVALID',
    `"${type}" cannot be the type of a custom event: use a namespace, such as myorg.${type}.`,
  );
}

/**
 * Converts an error of a tool to a LoopError with the tool and the log lines in its data. TOOL_FAILED replaces the
 * general code EXECUTION_FAILED; other codes are kept.
 */
function toToolError(id: string, thrown: unknown, notes: readonly ToolNote[]): LoopError {
  const error = toLoopError(thrown);
  const code = error.code === 'EXECUTION_FAILED' ? 'TOOL_FAILED' : error.code;
  const log = notes
    .filter(({ type }) => type === LOG_WRITTEN)
    .flatMap(({ value }) => (value === undefined ? [] : [value]));
  const data = error.data === undefined ? { tool: id } : { tool: id, ...(error.data as { [key: string]: Json }) };
  return new LoopError(code, error.message, log.length === 0 ? data : { ...data, log }, thrown);
}
