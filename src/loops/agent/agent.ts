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
import { ROUND } from '../../views/history.js';
import {
  type AskedCall,
  argumentsOf,
  assistantMessage,
  promptOf,
  type ToolEnd,
  toolMessage,
  toolResult,
  userMessage,
} from '../../views/messages.js';
import { modelEffect, resolved } from '../ask/effect.js';
import type { ModelDelta } from '../ask.js';
import { type Bench, benchOf, type Occasion, turnOf } from '../bench.js';
import { pointer } from '../definition/shape.js';
import type { ConversationParts, ModelReply, ModelRequest } from '../model.js';
import type { Origin } from '../origin.js';
import { answerOf, wantsJson } from './answer.js';
import { Dialogue } from './dialogue.js';
import { assertGoesOn, Spent } from './stop.js';
import { type Hands, type LinkedTool, runCalls, ToolTable } from './tools.js';

/** What an agent's body is made of. */
export interface AgentParts {
  readonly id: string;
  readonly spec: AgentSpec;
  readonly output: Validator;
  readonly policy: PolicySpec | undefined;
  readonly origin: Origin;
  /** Tells this definition from others of its id. */
  readonly definition: string;
  /** What answers, for an agent in code that was given it. */
  readonly model: Model | undefined;
  /** Whether a loop of this id is anywhere in what it is linked with. */
  calls(id: string): boolean;
}

const MAX_ROUNDS = 20;
const TOOL_TIMEOUT = 600_000;
/** The type under which a root records that it looked for messages once it had an answer. */
export const READ = 'rondo.inbox.read';

export function agentBody(
  parts: AgentParts,
  tools: readonly LinkedTool[],
): (input: Json, scope: Scope) => Promise<Json> {
  const table = new ToolTable(tools);
  return (input, scope) => {
    const missing = tools.find(({ loop }) => loop === undefined);
    if (missing !== undefined) throw notThere(parts.id, missing.name);
    const stray = Object.keys(parts.spec.approvals ?? {}).find((name) => name !== '*' && !parts.calls(name));
    if (stray !== undefined) throw guardsNothing(parts.id, stray);
    const bench = benchOf(scope);
    return new Working(parts, table, bench, bench.occasion(turnOf(scope)), scope).work(input);
  };
}

function notThere(agent: string, name: string): LoopError {
  return new LoopError('LOOP_NOT_FOUND', `The agent "${agent}" has a tool "${name}", which is not registered here.`, {
    loopId: name,
  });
}

/** A guard of a tool that there is not is a slip, and the tool that was meant has none. */
function guardsNothing(agent: string, name: string): LoopError {
  const message = `The approvals of the agent "${agent}" name "${name}", which is no tool of it and of nothing below it.`;
  return new LoopError('DEFINITION_INVALID', message, { path: pointer('/composite/agent/approvals', name) });
}

/** When an agent has to be done: by the wall clock at its start, and as it is measured. */
interface Deadline {
  readonly at: number;
  readonly period: Period;
}

/** One call of an agent, at work. */
class Working {
  private readonly parts: AgentParts;
  private readonly table: ToolTable;
  private readonly bench: Bench;
  private readonly occasion: Occasion;
  private readonly scope: Scope;
  private readonly dialogue: Dialogue;
  private readonly shown: ConversationParts;
  private readonly spent = new Spent();
  private deadline: Deadline | undefined;
  /** Whether this call began in this very body, and not in an earlier one that it goes on with. */
  private fresh = false;
  private repaired = false;

  constructor(parts: AgentParts, table: ToolTable, bench: Bench, occasion: Occasion, scope: Scope) {
    this.parts = parts;
    this.table = table;
    this.bench = bench;
    this.occasion = occasion;
    this.scope = scope;
    // Only who speaks with the user knows what was said before.
    this.dialogue = new Dialogue(this.root ? occasion.history() : []);
    const { spec, output } = parts;
    this.shown = {
      system: spec.instructions,
      messages: this.dialogue.messages,
      tools: table.tools.flatMap(({ shown }) => (shown === undefined ? [] : [shown])),
      schema: wantsJson(output) ? output.schema : undefined,
    };
  }

  private get root(): boolean {
    return !this.scope.key.includes('/');
  }

  /** Round after round, in one function: each that waits for itself costs as much as a step. */
  async work(input: Json): Promise<Json> {
    this.dialogue.add(userMessage(promptOf(input)));
    try {
      for (let round = 0; ; round++) {
        const { at, steer } = await this.begin(round);
        if (round === 0) this.watch(at);
        if (steer > 0) await this.hear('steer', steer);
        this.assertGoesOn(at);
        const reply = await this.ask();
        const { toolCalls } = reply;
        const given = (toolCalls ?? []).map(({ input }) => argumentsOf(input));
        this.dialogue.add(assistantMessage(reply, given));
        this.spent.add(reply);
        const done =
          toolCalls === undefined
            ? await this.answered(reply)
            : this.acted(toolCalls, await runCalls(this.scope, toolCalls, given, this.hands(reply)));
        if (done !== undefined) return done.value;
      }
    } finally {
      // A body that is left where it is, because its turn pauses, never comes here.
      this.deadline?.period.stop(false);
    }
  }

  /** Begins a round: what time it is, and who has said something meanwhile, are facts. */
  private begin(round: number): Promise<{ at: number; steer: number }> {
    const { occasion, root } = this;
    return this.scope.record(ROUND, () => {
      this.fresh = round === 0;
      return { round, at: this.time(), steer: root ? occasion.waiting().steer : 0 };
    });
  }

  /** The time as the deadline counts it: what passes in one process is measured by its monotonic clock. */
  private time(): number {
    const { deadline } = this;
    if (deadline === undefined) return this.bench.clock.now();
    return deadline.at - Math.ceil(deadline.period.left);
  }

  private assertGoesOn(now: number): void {
    const { id, spec } = this.parts;
    const { maxRounds = MAX_ROUNDS, stop = {} } = spec;
    assertGoesOn(id, this.spent, { maxRounds, stop, deadline: this.deadline?.at, now });
  }

  /** What this agent asks of everything below it. */
  private watch(at: number): void {
    const { id, spec } = this.parts;
    const { approvals, mode, stop } = spec;
    if (stop?.deadlineMs !== undefined) this.deadline = this.deadlineAt(at + stop.deadlineMs, stop.deadlineMs);
    const deadline = this.deadline?.period.end;
    const { byId: tools } = this.table;
    this.occasion.watches.watch(this.scope.key, { agent: id, approvals, mode, tools, deadline });
  }

  private deadlineAt(at: number, ms: number): Deadline {
    const id = `deadline ${this.scope.key}`;
    return { at, period: new Period(this.bench.clock, { id, until: at, ms }, this.fresh) };
  }

  private async hear(name: 'steer' | 'queue', count: number): Promise<void> {
    for (let left = count; left > 0; left--) {
      const said = (await this.scope.wait(name)) as { readonly text?: Json } | undefined;
      this.dialogue.add(userMessage(String(said?.text ?? '')));
    }
  }

  private ask(): Promise<ModelReply> {
    const { bench, scope } = this;
    const { policy, origin, definition, model } = this.parts;
    const { live } = this.occasion;
    const generationId = scope.key;
    const effect = modelEffect(this.request(), {
      bench,
      scope,
      origin,
      policy: resolved(policy, bench),
      definition,
      counts: 'session',
      model,
      conversation: this.shown,
      known: (reply) => this.table.marked(reply),
      onDelta: live === undefined ? undefined : (delta) => live({ ...this.withId(delta), generationId }),
    });
    return scope.effect(effect) as Promise<ModelReply>;
  }

  /** A piece of a tool's input, with the id of the loop in place of the name that the model uses. */
  private withId(delta: ModelDelta): ModelDelta {
    const { toolName } = delta;
    return toolName === undefined ? delta : { ...delta, toolName: this.table.idOf(toolName) };
  }

  private request(): ModelRequest {
    const { spec, model, policy } = this.parts;
    const { messages, length } = this.dialogue;
    const named =
      model === undefined
        ? this.bench.named(spec.backend)
        : { id: spec.backend.id, model: model.modelId, options: undefined };
    const request: { -readonly [K in keyof ModelRequest]: ModelRequest[K] } = {
      backendId: named.id,
      model: named.model,
      promptLength: length + (spec.instructions?.length ?? 0),
      messages: messages.length,
    };
    const maxTokens = least(spec.maxTokens, left(spec.stop?.outputTokens, this.spent.outputTokens));
    if (named.options !== undefined) request.options = named.options;
    if (policy?.cache !== undefined) request.history = this.dialogue.digest;
    if (maxTokens !== undefined) request.maxTokens = maxTokens;
    if (spec.temperature !== undefined) request.temperature = spec.temperature;
    return request;
  }

  /** What the calls of a reply are run with. */
  private hands({ finish }: ModelReply): Hands {
    const { table, occasion } = this;
    const cut = finish === 'length' || finish === 'content-filter';
    const refusal = cut ? `The reply was cut short (${finish}), so none of its calls was run; ask again.` : undefined;
    const { toolTimeoutMs: limitMs = TOOL_TIMEOUT } = this.parts.spec;
    return { agent: this.scope.key, tools: table.byId, watches: occasion.watches, refusal, limitMs };
  }

  /** The tools have run; the answer of the agent that one of them handed over to, if it did. */
  private acted(calls: readonly AskedCall[], ends: readonly ToolEnd[]): { readonly value: Json } | undefined {
    const { byId } = this.table;
    this.dialogue.add(toolMessage(calls.map((call, index) => toolResult(call, ends[index] ?? { value: null }))));
    const taken = calls.findIndex(
      ({ name }, index) => byId.get(name)?.handoff === true && 'value' in (ends[index] ?? {}),
    );
    const end = ends[taken];
    return end !== undefined && 'value' in end ? { value: end.value ?? null } : undefined;
  }

  /** A reply without calls is the answer, unless it does not fit or somebody has more to say. */
  private async answered({ text }: ModelReply): Promise<{ readonly value: Json } | undefined> {
    const { output } = this.parts;
    const { value, fits } = answerOf(text, output);
    if (!fits && !this.repaired) {
      this.repaired = true;
      this.dialogue.add(userMessage(repairOf(value, output)));
      return undefined;
    }
    if (!this.root) return { value };
    const { steer, queue } = await this.scope.record(READ, () => ({ ...this.occasion.waiting() }));
    await this.hear('steer', steer);
    await this.hear('queue', queue);
    return steer + queue === 0 ? { value } : undefined;
  }
}

function repairOf(value: Json, output: Validator): string {
  const flaws = output.flaws(value).map(({ path, message }) => `${path || '/'} ${message}`);
  const told = flaws.join('; ').slice(0, 2000);
  return `Your answer does not fit: ${told}. Answer again with a JSON value that fits the schema, and nothing else.`;
}

function left(limit: number | undefined, used: number): number | undefined {
  return limit === undefined ? undefined : Math.max(1, limit - used);
}

function least(a: number | undefined, b: number | undefined): number | undefined {
  return a === undefined ? b : b === undefined ? a : Math.min(a, b);
}
