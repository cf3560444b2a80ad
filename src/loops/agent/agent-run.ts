/**
 * One running call of an agent: its conversation, its usage and its limits. The instructions of the agent's program
 * call it (`agent.ts`). Every message is journaled where it originates (the input, a reply, a tool result), so a request
 * contains only the number and the length of the messages. A replay rebuilds the same conversation from the same
 * entries.
 */

import { Period } from '../../journal/period.js';
import type { Validator } from '../../json/schema.js';
import { outputTokensOf } from '../../policy/token-count.js';
import type { Effect, Loop, Scope } from '../../protocol/body.js';
import type { Json } from '../../protocol/json.js';
import type { AgentSpec, PolicySpec } from '../../protocol/loop.js';
import {
  assistantMessage,
  parseArgumentsOrText,
  promptOf,
  type RecordedToolCall,
  type ToolCallOutcome,
  toolMessage,
  toolResult,
  userMessage,
} from '../../views/messages.js';
import type { LoadedContext } from '../context/load-context.js';
import { leafMembers } from '../leaf-loop.js';
import type { ModelConversation, ModelReply, ModelRequest } from '../model.js';
import { modelEffect, withNamedFallbacks } from '../model-call/model-effect.js';
import { requestBound } from '../model-call/request-bound.js';
import type { ModelDelta } from '../model-call.js';
import type { ModelObject } from '../model-ref.js';
import type { DefinitionOrigin } from '../origin.js';
import type { NextIndex } from '../plan/driver.js';
import { type LoopServices, servicesOf, type TurnContext, turnIdOf } from '../services.js';
import { MessageLog } from './message-log.js';
import { expectsJson, parseAgentOutput } from './output.js';
import { assertWithinLimits, UsageTotal } from './stop.js';
import { runToolCalls, type ToolRunOptions, type ToolTable } from './tools.js';

/** The options of an agent. */
export interface AgentOptions {
  readonly id: string;
  readonly version: string;
  readonly spec: AgentSpec;
  readonly output: Validator;
  readonly policy: PolicySpec | undefined;
  readonly origin: DefinitionOrigin;
  /** The origin that paths of `contextSkills` are relative to. */
  readonly contextOrigin: DefinitionOrigin;
  /** Distinguishes definitions with the same id. */
  readonly definitionFingerprint: string;
  /** The model objects of an agent in code. */
  readonly modelObjects: readonly ModelObject[] | undefined;
  /** The start of the digest of the instructions; undefined without instructions. */
  readonly systemDigest: string | undefined;
}

const DEFAULT_MAX_ROUNDS = 20;
const DEFAULT_TOOL_TIMEOUT_MS = 600_000;
/** Type of the record with the number of pending messages, written when the agent of the root call has an answer. */
const INBOX_READ_TYPE = 'rondo.inbox.read';

/**
 * The fact that a round begins: its zero-based number, the time, and the number of `steer` messages in the inbox. A type,
 * because an interface is not JSON.
 */
export type BegunRound = { readonly round: number; readonly at: number; readonly steer: number };

/** The deadline of an agent. */
interface Deadline {
  /** The end by the wall clock, in milliseconds since the epoch, computed at the start of the agent. */
  readonly at: number;
  /** The same period, measured by the monotonic clock. */
  readonly period: Period;
}

const NO_REPLY = { reply: { text: '', model: '', finish: 'other' }, args: [] };

/** One running call of an agent. */
export class AgentRun {
  private readonly options: AgentOptions;
  private readonly toolTable: ToolTable;
  private readonly services: LoopServices;
  private readonly turnContext: TurnContext;
  private readonly scope: Scope;
  private readonly messageLog: MessageLog;
  private readonly conversation: ModelConversation;
  private readonly usage = new UsageTotal();
  private deadline: Deadline | undefined;
  /** True during the first round of a call that this run of the body started; false for a replayed call. */
  private isNewCall = false;
  private hasRequestedRepair = false;
  /** The zero-based number of the next round. */
  private round = 0;
  private lastReply: { readonly reply: ModelReply; readonly args: readonly Json[] } = NO_REPLY;
  /** The output; undefined until the agent is settled. */
  output: { readonly value: Json } | undefined;
  /** The loop that calls the model. */
  readonly modelLoop: Loop<Json, Json>;

  constructor(options: AgentOptions, table: ToolTable, input: Json, scope: Scope, context?: LoadedContext) {
    this.options = options;
    this.toolTable = table;
    this.services = servicesOf(scope);
    this.turnContext = this.services.turnContext(turnIdOf(scope));
    this.scope = scope;
    // Only the agent of the root call takes part in the conversation with the user.
    this.messageLog = new MessageLog(this.isRoot ? this.turnContext.earlierMessages() : []);
    const { spec, output } = options;
    this.conversation = {
      system: spec.instructions,
      messages: this.messageLog.messages,
      tools: table.tools.flatMap(({ modelTool }) => (modelTool === undefined ? [] : [modelTool])),
      schema: expectsJson(output) ? output.schema : undefined,
    };
    this.modelLoop = this.createModelLoop();
    if (context !== undefined) this.messageLog.add(context.message);
    this.messageLog.add(userMessage(promptOf(input)));
  }

  private get isRoot(): boolean {
    return !this.scope.key.includes('/');
  }

  /** Stops the timer of the deadline. */
  end(): void {
    this.deadline?.period.stop(false);
  }

  /** Returns the fact that a round begins. */
  newRound(): BegunRound {
    const { round, turnContext, isRoot } = this;
    this.isNewCall = round === 0;
    return { round, at: this.now(), steer: isRoot ? turnContext.inboxCounts().steer : 0 };
  }

  /** Begins a round: receives messages, and checks the limits. */
  begin({ at, steer }: BegunRound, next: number): NextIndex {
    const round = this.round++;
    if (round === 0) this.addRestrictions(at);
    if (steer > 0) return this.receiveMessages('steer', steer).then(() => this.checkLimits(at, next));
    return this.checkLimits(at, next);
  }

  private checkLimits(at: number, next: number): number {
    this.assertWithinLimits(at);
    return next;
  }

  /** Adds the reply of the model to the conversation. */
  receiveReply(reply: ModelReply): void {
    const args = (reply.toolCalls ?? []).map(({ input }) => parseArgumentsOrText(input));
    this.messageLog.add(assistantMessage(reply, args));
    this.usage.add(reply);
    this.lastReply = { reply, args };
  }

  /** Runs the tools that the model chose, or takes its answer. The agent is settled once it has an output. */
  act(next: number): NextIndex {
    const { reply, args } = this.lastReply;
    const { toolCalls } = reply;
    if (toolCalls === undefined)
      return this.finalOutput(reply).then((output) => {
        this.output = output;
        return next;
      });
    return runToolCalls(this.scope, toolCalls, args, this.toolRunOptions(reply), (outcomes) => {
      this.output = this.addToolResults(toolCalls, outcomes);
      return next;
    });
  }

  /** Returns the wall-clock time. With a deadline, it advances with the monotonic clock within one process. */
  private now(): number {
    const { deadline } = this;
    if (deadline === undefined) return this.services.clock.now();
    return deadline.at - Math.ceil(deadline.period.remainingMs);
  }

  private assertWithinLimits(now: number): void {
    const { id, spec } = this.options;
    const { maxRounds = DEFAULT_MAX_ROUNDS, stop = {} } = spec;
    assertWithinLimits(id, this.usage, { maxRounds, stop, deadlineAt: this.deadline?.at, now });
  }

  /** Registers the restrictions of this agent for everything that runs below it. */
  private addRestrictions(at: number): void {
    const { id, spec } = this.options;
    const { approvals, mode, stop } = spec;
    if (stop?.deadlineMs !== undefined) this.deadline = this.startDeadline(at + stop.deadlineMs, stop.deadlineMs);
    const deadline = this.deadline?.period.endsAtElapsed;
    const { byId: tools } = this.toolTable;
    this.turnContext.restrictions.add(this.scope.key, { agentId: id, approvals, mode, tools, deadlineAt: deadline });
  }

  private startDeadline(at: number, ms: number): Deadline {
    const id = `deadline ${this.scope.key}`;
    return { at, period: new Period(this.services.clock, { id, until: at, durationMs: ms }, this.isNewCall) };
  }

  private async receiveMessages(name: 'steer' | 'queue', count: number): Promise<void> {
    for (let remaining = count; remaining > 0; remaining--) {
      const message = (await this.scope.wait(name)) as { readonly text?: Json } | undefined;
      this.messageLog.add(userMessage(String(message?.text ?? '')));
    }
  }

  /** Creates the loop that calls the model. Its input is the request and its output the reply. */
  private createModelLoop(): Loop<Json, Json> {
    const { id, version } = this.options;
    const effect = (request: Json, scope: Scope): Effect => this.modelEffect(request as unknown as ModelRequest, scope);
    const members = { version, bodyKind: 'model', hasFastValidation: true, awaitsSteps: true } as const;
    return { name: `${id}.model`, ...members, ...leafMembers({ effect }) };
  }

  private modelEffect(request: ModelRequest, scope: Scope): Effect {
    const { services } = this;
    const { policy, origin, definitionFingerprint, modelObjects } = this.options;
    const { onLiveDelta } = this.turnContext;
    const generationId = this.scope.key;
    const { inputTokens, outputTokens } = this.options.spec.stop ?? {};
    return modelEffect(request, {
      services,
      scope,
      origin,
      policy: withNamedFallbacks(policy, services),
      definitionFingerprint,
      replyCountScope: 'session',
      modelObjects,
      conversation: this.conversation,
      hasTokenLimit: inputTokens !== undefined || outputTokens !== undefined,
      annotateReply: (reply) => this.withTokenBounds(this.toolTable.withToolNames(reply), request),
      onDelta:
        onLiveDelta === undefined ? undefined : (delta) => onLiveDelta({ ...this.withToolName(delta), generationId }),
    });
  }

  /** Adds each token count that a limit needs and the model does not report, or reports too low. */
  private withTokenBounds(reply: ModelReply, request: ModelRequest): ModelReply {
    const { stop } = this.options.spec;
    if (stop === undefined) return reply;
    const bounds: { estimatedInputTokens?: number; estimatedOutputTokens?: number } = {};
    if (stop.inputTokens !== undefined && reply.inputTokens === undefined)
      bounds.estimatedInputTokens = requestBound(request, this.conversation).inputBytes;
    const outputTokens = stop.outputTokens === undefined ? reply.outputTokens : outputTokensOf(reply);
    if (outputTokens !== undefined && outputTokens !== reply.outputTokens) bounds.estimatedOutputTokens = outputTokens;
    return { ...reply, ...bounds };
  }

  /** Replaces the name that the model uses with that of the tool. */
  private withToolName(delta: ModelDelta): ModelDelta {
    const { toolName } = delta;
    return toolName === undefined ? delta : { ...delta, toolName: this.toolTable.nameOf(toolName) };
  }

  /** Returns the request of the next model call. */
  buildRequest(): ModelRequest {
    const { spec, policy, systemDigest } = this.options;
    const { messages, lengthChars } = this.messageLog;
    const ref = this.services.toModelRef(spec.backend);
    const request: { -readonly [K in keyof ModelRequest]: ModelRequest[K] } = {
      backendId: ref.id,
      model: ref.model,
      promptLength: lengthChars + (spec.instructions?.length ?? 0),
      messages: messages.length,
    };
    const maxTokens = minDefined(spec.maxTokens, remainingTokens(spec.stop?.outputTokens, this.usage.outputTokens));
    if (systemDigest !== undefined) request.systemDigest = systemDigest;
    if (ref.options !== undefined) request.options = ref.options;
    if (policy?.cache !== undefined) request.history = this.messageLog.digest;
    if (maxTokens !== undefined) request.maxTokens = maxTokens;
    if (spec.temperature !== undefined) request.temperature = spec.temperature;
    return request;
  }

  /** Returns the options for the tool calls of a reply. The calls of a truncated reply are refused. */
  private toolRunOptions({ finish }: ModelReply): ToolRunOptions {
    const { toolTable, turnContext } = this;
    const isTruncated = finish === 'length' || finish === 'content-filter';
    const { toolTimeoutMs = DEFAULT_TOOL_TIMEOUT_MS } = this.options.spec;
    return {
      agentKey: this.scope.key,
      toolsByName: toolTable.byName,
      restrictions: turnContext.restrictions,
      refusalReason: isTruncated
        ? `The reply was cut short (${finish}), so none of its tool calls ran; call them again.`
        : undefined,
      timeoutMs: toolTimeoutMs,
    };
  }

  /** Adds the results of the tools to the conversation. Returns the output of the first successful handoff, if any. */
  private addToolResults(
    calls: readonly RecordedToolCall[],
    outcomes: readonly ToolCallOutcome[],
  ): { readonly value: Json } | undefined {
    const { byName } = this.toolTable;
    this.messageLog.add(toolMessage(calls.map((call, index) => toolResult(call, outcomes[index] ?? { value: null }))));
    const handoff = calls.findIndex(
      ({ name }, index) => byName.get(name)?.isHandoff === true && 'value' in (outcomes[index] ?? {}),
    );
    const outcome = outcomes[handoff];
    return outcome !== undefined && 'value' in outcome ? { value: outcome.value ?? null } : undefined;
  }

  /**
   * Returns the output in a reply without tool calls. Returns undefined if the model must be called again: once to
   * repair an invalid output, and in the root call when messages have arrived.
   */
  private async finalOutput({ text }: ModelReply): Promise<{ readonly value: Json } | undefined> {
    const { output } = this.options;
    const { value, isValid } = parseAgentOutput(text, output);
    if (!isValid && !this.hasRequestedRepair) {
      this.hasRequestedRepair = true;
      this.messageLog.add(userMessage(repairPrompt(value, output)));
      return undefined;
    }
    if (!this.isRoot) return { value };
    const { steer, queue } = await this.scope.record(INBOX_READ_TYPE, () => ({ ...this.turnContext.inboxCounts() }));
    await this.receiveMessages('steer', steer);
    await this.receiveMessages('queue', queue);
    return steer + queue === 0 ? { value } : undefined;
  }
}

function repairPrompt(value: Json, output: Validator): string {
  const issues = output.issues(value).map(({ path, message }) => `${path || '/'} ${message}`);
  const description = issues.join('; ').slice(0, 2000);
  return `Your answer does not fit: ${description}. Answer again with a JSON value that fits the schema, and nothing else.`;
}

function remainingTokens(limit: number | undefined, used: number): number | undefined {
  return limit === undefined ? undefined : Math.max(1, limit - used);
}

function minDefined(a: number | undefined, b: number | undefined): number | undefined {
  return a === undefined ? b : b === undefined ? a : Math.min(a, b);
}
