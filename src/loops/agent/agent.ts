/**
 * The body of an agent: repeat until done, ask the model, run the tools that it chose. Every message is journaled where
 * it arises (the input, a reply, a tool's result), so a request holds only how many there are and how long; a body that
 * runs again makes the same conversation of the same facts.
 */

import { LoopError } from '../../base/errors.js';
import { Period } from '../../journal/period.js';
import type { Validator } from '../../json/schema.js';
import type { Scope } from '../../protocol/body.js';
import type { Json } from '../../protocol/json.js';
import type { AgentSpec, PolicySpec } from '../../protocol/loop.js';
import type { Model } from '../../protocol/model.js';
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
import type { ModelConversation, ModelReply, ModelRequest } from '../model.js';
import { modelEffect, withNamedFallbacks } from '../model-call/model-effect.js';
import type { ModelDelta } from '../model-call.js';
import type { DefinitionOrigin } from '../origin.js';
import { type LoopServices, servicesOf, type TurnContext, turnIdOf } from '../services.js';
import { MessageLog } from './message-log.js';
import { expectsJson, parseAgentOutput } from './output.js';
import { assertWithinLimits, UsageTotal } from './stop.js';
import { type LinkedTool, runToolCalls, type ToolRunOptions, ToolTable } from './tools.js';

/** What an agent's body is made of. */
interface AgentBodyOptions {
  readonly id: string;
  readonly spec: AgentSpec;
  readonly output: Validator;
  readonly policy: PolicySpec | undefined;
  readonly origin: DefinitionOrigin;
  /** Tells this definition from others of its id. */
  readonly definitionFingerprint: string;
  /** What answers, for an agent in code that was given it. */
  readonly model: Model | undefined;
  /** Whether a loop of this id is anywhere in what it is linked with. */
  includesLoop(id: string): boolean;
}

const DEFAULT_MAX_ROUNDS = 20;
const DEFAULT_TOOL_TIMEOUT_MS = 600_000;
/** The type under which a root records that it looked for messages once it had an answer. */
const INBOX_READ_TYPE = 'rondo.inbox.read';

export function agentBody(
  parts: AgentBodyOptions,
  tools: readonly LinkedTool[],
): (input: Json, scope: Scope) => Promise<Json> {
  const table = new ToolTable(tools);
  return (input, scope) => {
    const missing = tools.find(({ loop }) => loop === undefined);
    if (missing !== undefined) throw missingToolError(parts.id, missing.loopId);
    const stray = Object.keys(parts.spec.approvals ?? {}).find((name) => name !== '*' && !parts.includesLoop(name));
    if (stray !== undefined) throw unknownApprovalError(parts.id, stray);
    const bench = servicesOf(scope);
    return new AgentRun(parts, table, bench, bench.turnContext(turnIdOf(scope)), scope).run(input);
  };
}

function missingToolError(agent: string, name: string): LoopError {
  return new LoopError('LOOP_NOT_FOUND', `The agent "${agent}" has a tool "${name}", which is not registered here.`, {
    loopId: name,
  });
}

/** A guard of a tool that there is not is a slip, and the tool that was meant has none. */
function unknownApprovalError(agent: string, name: string): LoopError {
  const message = `The approvals of the agent "${agent}" name "${name}", which is no tool of it and of nothing below it.`;
  return new LoopError('DEFINITION_INVALID', message, { path: appendPointer('/composite/agent/approvals', name) });
}

/** When an agent has to be done: by the wall clock at its start, and as it is measured. */
interface Deadline {
  readonly at: number;
  readonly period: Period;
}

/** One call of an agent, at work. */
class AgentRun {
  private readonly options: AgentBodyOptions;
  private readonly toolTable: ToolTable;
  private readonly services: LoopServices;
  private readonly turnContext: TurnContext;
  private readonly scope: Scope;
  private readonly messageLog: MessageLog;
  private readonly conversation: ModelConversation;
  private readonly usage = new UsageTotal();
  private deadline: Deadline | undefined;
  /** Whether this call began in this very body, and not in an earlier one that it goes on with. */
  private isNewCall = false;
  private hasRequestedRepair = false;

  constructor(parts: AgentBodyOptions, table: ToolTable, bench: LoopServices, occasion: TurnContext, scope: Scope) {
    this.options = parts;
    this.toolTable = table;
    this.services = bench;
    this.turnContext = occasion;
    this.scope = scope;
    // Only who speaks with the user knows what was said before.
    this.messageLog = new MessageLog(this.isRoot ? occasion.earlierMessages() : []);
    const { spec, output } = parts;
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

  /** Round after round, in one function: each that waits for itself costs as much as a step. */
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
        const given = (toolCalls ?? []).map(({ input }) => parseArgumentsOrText(input));
        this.messageLog.add(assistantMessage(reply, given));
        this.usage.add(reply);
        const done =
          toolCalls === undefined
            ? await this.finalOutput(reply)
            : this.addToolResults(
                toolCalls,
                await runToolCalls(this.scope, toolCalls, given, this.toolRunOptions(reply)),
              );
        if (done !== undefined) return done.value;
      }
    } finally {
      // A body that is left where it is, because its turn pauses, never comes here.
      this.deadline?.period.stop(false);
    }
  }

  /** Begins a round: what time it is, and who has said something meanwhile, are facts. */
  private beginRound(round: number): Promise<{ at: number; steer: number }> {
    const { turnContext, isRoot } = this;
    return this.scope.record(ROUND_BEGUN, () => {
      this.isNewCall = round === 0;
      return { round, at: this.now(), steer: isRoot ? turnContext.inboxCounts().steer : 0 };
    });
  }

  /** The time as the deadline counts it: what passes in one process is measured by its monotonic clock. */
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

  /** What this agent asks of everything below it. */
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
    for (let left = count; left > 0; left--) {
      const said = (await this.scope.wait(name)) as { readonly text?: Json } | undefined;
      this.messageLog.add(userMessage(String(said?.text ?? '')));
    }
  }

  private callModel(): Promise<ModelReply> {
    const { services, scope } = this;
    const { policy, origin, definitionFingerprint, model } = this.options;
    const { onLiveDelta } = this.turnContext;
    const generationId = scope.key;
    const effect = modelEffect(this.buildRequest(), {
      services,
      scope,
      origin,
      policy: withNamedFallbacks(policy, services),
      definitionFingerprint,
      replyCountScope: 'session',
      model,
      conversation: this.conversation,
      annotateReply: (reply) => this.toolTable.withLoopIds(reply),
      onDelta:
        onLiveDelta === undefined ? undefined : (delta) => onLiveDelta({ ...this.withLoopId(delta), generationId }),
    });
    return scope.effect(effect) as Promise<ModelReply>;
  }

  /** A piece of a tool's input, with the id of the loop in place of the name that the model uses. */
  private withLoopId(delta: ModelDelta): ModelDelta {
    const { toolName } = delta;
    return toolName === undefined ? delta : { ...delta, toolName: this.toolTable.loopIdOf(toolName) };
  }

  private buildRequest(): ModelRequest {
    const { spec, model, policy } = this.options;
    const { messages, lengthChars } = this.messageLog;
    const named =
      model === undefined
        ? this.services.toModelRef(spec.backend)
        : { id: spec.backend.id, model: model.modelId, options: undefined };
    const request: { -readonly [K in keyof ModelRequest]: ModelRequest[K] } = {
      backendId: named.id,
      model: named.model,
      promptLength: lengthChars + (spec.instructions?.length ?? 0),
      messages: messages.length,
    };
    const maxTokens = minDefined(spec.maxTokens, remainingTokens(spec.stop?.outputTokens, this.usage.outputTokens));
    if (named.options !== undefined) request.options = named.options;
    if (policy?.cache !== undefined) request.history = this.messageLog.digest;
    if (maxTokens !== undefined) request.maxTokens = maxTokens;
    if (spec.temperature !== undefined) request.temperature = spec.temperature;
    return request;
  }

  /** What the calls of a reply are run with. */
  private toolRunOptions({ finish }: ModelReply): ToolRunOptions {
    const { toolTable, turnContext } = this;
    const cut = finish === 'length' || finish === 'content-filter';
    const refusal = cut ? `The reply was cut short (${finish}), so none of its calls was run; ask again.` : undefined;
    const { toolTimeoutMs: limitMs = DEFAULT_TOOL_TIMEOUT_MS } = this.options.spec;
    return {
      agentKey: this.scope.key,
      toolsById: toolTable.byId,
      restrictions: turnContext.restrictions,
      refusalReason: refusal,
      timeoutMs: limitMs,
    };
  }

  /** The tools have run; the answer of the agent that one of them handed over to, if it did. */
  private addToolResults(
    calls: readonly RecordedToolCall[],
    ends: readonly ToolCallOutcome[],
  ): { readonly value: Json } | undefined {
    const { byId } = this.toolTable;
    this.messageLog.add(toolMessage(calls.map((call, index) => toolResult(call, ends[index] ?? { value: null }))));
    const taken = calls.findIndex(
      ({ name }, index) => byId.get(name)?.isHandoff === true && 'value' in (ends[index] ?? {}),
    );
    const end = ends[taken];
    return end !== undefined && 'value' in end ? { value: end.value ?? null } : undefined;
  }

  /** A reply without calls is the answer, unless it does not fit or somebody has more to say. */
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
  const flaws = output.issues(value).map(({ path, message }) => `${path || '/'} ${message}`);
  const told = flaws.join('; ').slice(0, 2000);
  return `Your answer does not fit: ${told}. Answer again with a JSON value that fits the schema, and nothing else.`;
}

function remainingTokens(limit: number | undefined, used: number): number | undefined {
  return limit === undefined ? undefined : Math.max(1, limit - used);
}

function minDefined(a: number | undefined, b: number | undefined): number | undefined {
  return a === undefined ? b : b === undefined ? a : Math.min(a, b);
}
