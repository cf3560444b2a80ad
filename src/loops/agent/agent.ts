/**
 * The body of an agent: calls the model, runs the tools that it chose, and repeats until the model answers. Every
 * message is journaled where it originates (the input, a reply, a tool result), so a request contains only the number
 * and the length of the messages. A replay rebuilds the same conversation from the same entries.
 */

import { LoopError } from '../../base/errors.js';
import { Period } from '../../journal/period.js';
import { digestOfText } from '../../journal/record.js';
import type { Validator } from '../../json/schema.js';
import type { Scope } from '../../protocol/body.js';
import type { Json } from '../../protocol/json.js';
import type { AgentSpec, PolicySpec } from '../../protocol/loop.js';
import { ROUND_BEGUN } from '../../views/history.js';
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
import { appendPointer } from '../definition/shape.js';
import { failedDefinitionError } from '../failed-definition.js';
import type { ModelConversation, ModelReply, ModelRequest } from '../model.js';
import { modelEffect, withNamedFallbacks } from '../model-call/model-effect.js';
import type { ModelDelta } from '../model-call.js';
import type { ModelObject } from '../model-ref.js';
import type { DefinitionOrigin } from '../origin.js';
import { type LoopServices, servicesOf, type TurnContext, turnIdOf } from '../services.js';
import { MessageLog } from './message-log.js';
import { expectsJson, parseAgentOutput } from './output.js';
import { assertWithinLimits, estimatedOutputTokens, estimatedTokens, UsageTotal } from './stop.js';
import { type LinkedTool, runToolCalls, type ToolRunOptions, ToolTable } from './tools.js';

interface AgentBodyOptions {
  readonly id: string;
  readonly spec: AgentSpec;
  readonly output: Validator;
  readonly policy: PolicySpec | undefined;
  readonly origin: DefinitionOrigin;
  /** Distinguishes definitions with the same id. */
  readonly definitionFingerprint: string;
  /** The model objects of an agent in code. */
  readonly modelObjects: readonly ModelObject[] | undefined;
  /** True if a loop with this id, or an inline tool of this name, is part of the linked loop. */
  includesLoop(name: string): boolean;
}

const DEFAULT_MAX_ROUNDS = 20;
const DEFAULT_TOOL_TIMEOUT_MS = 600_000;
/** Type of the record with the number of pending messages, written when the agent of the root call has an answer. */
const INBOX_READ_TYPE = 'rondo.inbox.read';

/**
 * Returns the body of an agent. Before the first round it throws LOOP_NOT_FOUND if a tool is not linked, and
 * DEFINITION_INVALID if its definition could not be loaded or if an approval policy names a loop that is not linked.
 */
export function agentBody(
  options: AgentBodyOptions,
  tools: readonly LinkedTool[],
): (input: Json, scope: Scope) => Promise<Json> {
  const { id, spec } = options;
  const table = new ToolTable(tools);
  const agent: RunOptions = { ...options, systemDigest: systemDigestOf(spec.instructions) };
  return (input, scope) => {
    const missing = tools.find(({ loop }) => loop === undefined);
    if (missing !== undefined) throw missingToolError(id, missing);
    const unknown = Object.keys(spec.approvals ?? {}).find((name) => name !== '*' && !options.includesLoop(name));
    if (unknown !== undefined) throw unknownApprovalError(id, unknown);
    const services = servicesOf(scope);
    return new AgentRun(agent, table, services, services.turnContext(turnIdOf(scope)), scope).run(input);
  };
}

/** The options of an agent with what is derived from them once. */
interface RunOptions extends AgentBodyOptions {
  readonly systemDigest: string | undefined;
}

/** How many characters of the digest of the instructions are journaled. */
const SYSTEM_DIGEST_CHARS = 16;

function systemDigestOf(instructions: string | undefined): string | undefined {
  return instructions === undefined ? undefined : digestOfText(instructions).slice(0, SYSTEM_DIGEST_CHARS);
}

function missingToolError(agent: string, { loopId, failure }: LinkedTool): LoopError {
  const subject = `The agent "${agent}" has a tool "${loopId}", which`;
  if (failure !== undefined) return failedDefinitionError(failure, subject);
  return new LoopError('LOOP_NOT_FOUND', `${subject} is not registered here.`, { loopId });
}

/**
 * Returns the error for an approval policy that names an unknown tool. The name is likely misspelt, which would leave
 * the intended tool without a policy.
 */
function unknownApprovalError(agent: string, name: string): LoopError {
  const message = `The approvals of the agent "${agent}" name "${name}", which no loop below it has as a tool.`;
  return new LoopError('DEFINITION_INVALID', message, { path: appendPointer('/composite/agent/approvals', name) });
}

/** The deadline of an agent. */
interface Deadline {
  /** The end by the wall clock, in milliseconds since the epoch, computed at the start of the agent. */
  readonly at: number;
  /** The same period, measured by the monotonic clock. */
  readonly period: Period;
}

/** One running call of an agent. */
class AgentRun {
  private readonly options: RunOptions;
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

  constructor(options: RunOptions, table: ToolTable, services: LoopServices, turnContext: TurnContext, scope: Scope) {
    this.options = options;
    this.toolTable = table;
    this.services = services;
    this.turnContext = turnContext;
    this.scope = scope;
    // Only the agent of the root call takes part in the conversation with the user.
    this.messageLog = new MessageLog(this.isRoot ? turnContext.earlierMessages() : []);
    const { spec, output } = options;
    this.conversation = {
      system: spec.instructions,
      messages: this.messageLog.messages,
      tools: table.tools.flatMap(({ modelTool }) => (modelTool === undefined ? [] : [modelTool])),
      schema: expectsJson(output) ? output.schema : undefined,
    };
  }

  private get isRoot(): boolean {
    return !this.scope.key.includes('/');
  }

  /**
   * Runs all rounds and returns the output. They share one async function, because a nested one costs as much as a
   * step.
   */
  async run(input: Json): Promise<Json> {
    this.messageLog.add(userMessage(promptOf(input)));
    try {
      for (let round = 0; ; round++) {
        const { at, steer } = await this.beginRound(round);
        if (round === 0) this.addRestrictions(at);
        if (steer > 0) await this.receiveMessages('steer', steer);
        this.assertWithinLimits(at);
        const reply = await this.callModel();
        const { toolCalls } = reply;
        const args = (toolCalls ?? []).map(({ input }) => parseArgumentsOrText(input));
        this.messageLog.add(assistantMessage(reply, args));
        this.usage.add(reply);
        const output =
          toolCalls === undefined
            ? await this.finalOutput(reply)
            : this.addToolResults(
                toolCalls,
                await runToolCalls(this.scope, toolCalls, args, this.toolRunOptions(reply)),
              );
        if (output !== undefined) return output.value;
      }
    } finally {
      // Not reached by a body that is suspended because its turn pauses.
      this.deadline?.period.stop(false);
    }
  }

  /** Begins a round and records the time and the number of `steer` messages in the inbox. */
  private beginRound(round: number): Promise<{ at: number; steer: number }> {
    const { turnContext, isRoot } = this;
    return this.scope.record(ROUND_BEGUN, () => {
      this.isNewCall = round === 0;
      return { round, at: this.now(), steer: isRoot ? turnContext.inboxCounts().steer : 0 };
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

  private callModel(): Promise<ModelReply> {
    const { services, scope } = this;
    const { policy, origin, definitionFingerprint, modelObjects } = this.options;
    const { onLiveDelta } = this.turnContext;
    const generationId = scope.key;
    const request = this.buildRequest();
    const { inputTokens, outputTokens } = this.options.spec.stop ?? {};
    const effect = modelEffect(request, {
      services,
      scope,
      origin,
      policy: withNamedFallbacks(policy, services),
      definitionFingerprint,
      replyCountScope: 'session',
      modelObjects,
      conversation: this.conversation,
      hasTokenLimit: inputTokens !== undefined || outputTokens !== undefined,
      annotateReply: (reply) => this.withEstimates(this.toolTable.withToolNames(reply), request),
      onDelta:
        onLiveDelta === undefined ? undefined : (delta) => onLiveDelta({ ...this.withToolName(delta), generationId }),
    });
    return scope.effect(effect) as Promise<ModelReply>;
  }

  /** Adds an estimate of each token count that a limit needs and the model does not report. */
  private withEstimates(reply: ModelReply, { promptLength }: ModelRequest): ModelReply {
    const { stop } = this.options.spec;
    if (stop === undefined) return reply;
    const estimates: { estimatedInputTokens?: number; estimatedOutputTokens?: number } = {};
    if (stop.inputTokens !== undefined && reply.inputTokens === undefined)
      estimates.estimatedInputTokens = estimatedTokens(promptLength + JSON.stringify(this.conversation.tools).length);
    if (stop.outputTokens !== undefined && reply.outputTokens === undefined)
      estimates.estimatedOutputTokens = estimatedOutputTokens(reply);
    return { ...reply, ...estimates };
  }

  /** Replaces the name that the model uses with that of the tool. */
  private withToolName(delta: ModelDelta): ModelDelta {
    const { toolName } = delta;
    return toolName === undefined ? delta : { ...delta, toolName: this.toolTable.nameOf(toolName) };
  }

  private buildRequest(): ModelRequest {
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
