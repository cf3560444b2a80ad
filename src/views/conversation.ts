/**
 * The conversation: a session as front ends see it, folded from its entries, live and on replay alike. A call with a
 * round is an agent, and its key the generation. An envelope's id is the place of the entry that it was made of; one
 * that comes again under its id replaces the earlier. Nothing is remembered of calls that ended.
 */
import { ownProperty, ownText } from '../base/own-property.js';
import type { Approval } from '../protocol/approval.js';
import type { Entry, ErrorRecord } from '../protocol/entry.js';
import type { EventContents, EventEnvelope, EventEnvelopeOf, EventType, ToolCallContent } from '../protocol/events.js';
import type { Json } from '../protocol/json.js';
import {
  type Agent,
  agentAbove,
  type Call,
  generationAbove,
  rootOf,
  toolAround,
  toolAt,
  type Use,
} from './conversation/call.js';
import { above, Calls } from './conversation/calls.js';
import { beginning, messageOf, summaryOf, toolCallsOf, triggerOf } from './conversation/content.js';
import { returnedEffect, settledEffect, type Told, watchEffect } from './conversation/effects.js';
import { Gate } from './conversation/gate.js';
import { REFUSED, ROUND } from './history.js';
import { isRejection, promptOf } from './messages.js';
import { iso } from './time.js';

/** Why a call of a tool was refused before it began, and with which arguments: said beside its envelope. */
export interface Refusal {
  readonly code: string;
  readonly args?: Json;
}

const LEFT: ErrorRecord = { code: 'CANCELLED', message: 'What this call was part of ended before it.' };
const FAILED: ErrorRecord = { code: 'EXECUTION_FAILED', message: '' };

export class Conversation {
  private readonly sessionId: string;
  private readonly emit: (envelope: EventEnvelope, refusal?: Refusal) => void;
  private readonly calls = new Calls<Call>();
  private readonly gate: Gate;
  /** Approvals that wait, by id, and what they are shown on. */
  private readonly asking = new Map<string, Use>();
  /** How many envelopes the present entry has made. */
  private made = 0;

  constructor(sessionId: string, emit: (envelope: EventEnvelope, refusal?: Refusal) => void) {
    this.sessionId = sessionId;
    this.emit = emit;
    this.gate = new Gate(sessionId, this.calls, {
      asked: (approval, entry) => this.asked(approval, entry),
      answered: (approval, { approved }) => this.answered(approval, approved),
      // What nobody answered did not run: it must look neither open nor approved.
      over: (approval) => this.answered(approval, false),
    });
  }

  apply(entry: Entry): void {
    const { type } = entry;
    this.made = 0;
    this.gate.apply(entry);
    if (type === 'call.started') this.begin(entry);
    else if (type === 'call.completed' || type === 'call.errored') this.end(entry);
    else if (type === 'effect.asked' || type === 'effect.requested') watchEffect(this.calls, entry);
    else if (type === 'effect.returned') this.tell(returnedEffect(this.calls, entry), entry);
    else if (type === 'effect.settled') this.tell(settledEffect(this.calls, entry), entry);
    else if (type === ROUND) this.round(entry);
    else if (type === REFUSED) this.refused(entry);
    else if (type === 'signal.received') this.heard(entry);
    else if (type === 'cancel.requested') this.cancelled(entry);
    else if (type === 'race.won') this.lost(entry);
  }

  private begin({ key, name = '', value, at, took = 0 }: Entry): void {
    const parent = this.calls.around(key);
    if (parent === undefined && key.includes('/')) return;
    this.calls.begin({
      key,
      name,
      parent,
      open: 0,
      asked: 0,
      at: at - took,
      input: value,
      agent: undefined,
      use: toolAt(parent, key),
      effect: undefined,
      said: '',
      talks: false,
    });
  }

  private end(entry: Entry): void {
    const call = this.calls.get(entry.key);
    if (call === undefined) return;
    if (call.open > 0) for (const left of this.calls.below(call.key)) this.close(left, entry, LEFT);
    this.close(call, entry, entry.type === 'call.errored' ? (entry.error ?? FAILED) : undefined);
  }

  /** Branches that lost a race end without a word of their own. */
  private lost(entry: Entry): void {
    const { key, winner } = entry;
    if ((this.calls.around(key)?.open ?? 0) === 0) return;
    for (const left of this.calls.below(key, `${key}/${winner}`)) this.close(left, entry, LEFT);
  }

  private close(call: Call, entry: Entry, error: ErrorRecord | undefined): void {
    const { agent, use, parent } = call;
    const output = error === undefined ? entry.value : undefined;
    if (agent !== undefined && parent !== undefined) this.childEnded(call, agent, entry, error, output);
    if (use !== undefined) this.toolEnded(call, use, entry, error, output);
    if (agent !== undefined && parent === undefined && error !== undefined && error.code !== 'CANCELLED')
      this.say(entry, call.key, 'generation-failure', { error: `${error.code}: ${error.message}` });
    this.calls.end(call);
  }

  private toolEnded(call: Call, { envelope }: Use, entry: Entry, error?: ErrorRecord, result: Json = null): void {
    const { generationId, content } = envelope;
    const { toolCallId, toolName } = content;
    if (error === undefined) {
      const told = { toolCallId, toolName, result };
      this.say(entry, generationId, 'tool-result', call.said === '' ? told : { ...told, output: call.said });
      return;
    }
    const told = { toolCallId, toolName, error: error.message };
    this.say(entry, generationId, 'tool-error', isRejection(error) ? { ...told, isUserRejection: true } : told);
  }

  private childEnded(call: Call, agent: Agent, entry: Entry, error?: ErrorRecord, output?: Json): void {
    const { index, total } = toolAround(call) ?? { index: 0, total: 1 };
    const parentGenerationId = generationAbove(call);
    const summary = summaryOf(output, agent.said);
    this.say(entry, parentGenerationId, 'child-generation', {
      item: call.name,
      index,
      total,
      durationMs: Math.max(0, entry.at - call.at),
      parentGenerationId,
      childGenerationId: call.key,
      status: error === undefined ? 'ok' : 'error',
      ...(summary !== '' && { summary }),
    });
  }

  /** The first round of a call makes it an agent. */
  private round(entry: Entry): void {
    const call = this.calls.get(above(entry.key));
    if (call === undefined || call.agent !== undefined) return;
    call.agent = { said: '', uses: [] };
    rootOf(call).talks = true;
    if (call.parent !== undefined) {
      const triggeredBy = (agentAbove(call) ?? call.parent).name;
      const parentGenerationId = generationAbove(call);
      const instructions = promptOf(call.input);
      this.say(entry, call.key, 'loop-triggered', { triggeredBy, parentGenerationId, instructions });
      return;
    }
    const trigger = triggerOf(call.input);
    if (trigger !== undefined) this.say(entry, call.key, 'trigger', trigger);
    if (trigger === undefined || typeof ownProperty(call.input, 'prompt') === 'string')
      this.say(entry, call.key, 'user-message', { text: promptOf(call.input) });
  }

  private heard(entry: Entry): void {
    const { name, value } = entry;
    if (name !== 'steer' && name !== 'queue') return;
    this.say(entry, this.calls.latest()?.key ?? '', 'user-message', { text: messageOf(value) });
  }

  private cancelled(entry: Entry): void {
    const { key } = entry;
    if (this.calls.get(key)?.talks === true) this.say(entry, key, 'user-abort', { generationId: key });
  }

  private tell(told: Told | undefined, entry: Entry): void {
    if (told === undefined) return;
    const { call, value } = told;
    if (call.agent === undefined) call.said = ownText(value, 'said');
    else this.reply(call, call.agent, entry, value);
  }

  private reply({ key, name, parent }: Call, agent: Agent, entry: Entry, reply: Json | undefined): void {
    const reasoning = ownText(reply, 'reasoning');
    const durationMs = ownProperty(reply, 'reasoningMs');
    const text = ownText(reply, 'text');
    const timed = typeof durationMs === 'number' ? { text: reasoning, durationMs } : { text: reasoning };
    if (reasoning !== '') this.say(entry, key, 'reasoning', timed);
    if (text !== '') agent.said = beginning(text);
    if (text !== '' && parent === undefined) this.say(entry, key, 'assistant-message', { text });
    else if (text !== '') this.say(entry, key, 'other-agent-message', { text, agent: name });
    const contents = toolCallsOf(reply);
    agent.uses = contents.map((content, index) => {
      return { envelope: this.say(entry, key, 'tool-call', content), index, total: contents.length };
    });
  }

  /** A tool that there is not, or whose arguments cannot be read, has no call of its own. */
  private refused(entry: Entry): void {
    const { key, value } = entry;
    const call = this.calls.around(key);
    if (call?.agent === undefined) return;
    const code = ownText(value, 'code');
    const args = toolAt(call, key)?.envelope.content.args;
    const content = {
      toolCallId: ownText(value, 'id'),
      toolName: ownText(value, 'name'),
      error: ownText(value, 'message'),
    };
    this.say(entry, call.key, 'tool-error', content, args === undefined ? { code } : { code, args });
  }

  /** Shows an approval on the call that the model made, or, if the action lies deeper, as that very action. */
  private asked(approval: Approval, entry: Entry): void {
    const call = this.calls.get(approval.callId);
    const agent = call?.agent === undefined ? call && agentAbove(call) : call;
    if (call === undefined || agent === undefined) return;
    const status = { approvalStatus: 'pending_approval', approvalDescription: approval.description } as const;
    const { id: approvalId, callId: toolCallId, tool: toolName, arguments: args } = approval;
    const own = call.agent === undefined ? toolAt(call.parent, call.key) : undefined;
    const shown = own?.envelope.content;
    if (own !== undefined && shown?.toolName === toolName && shown.approvalId === undefined) {
      own.envelope = this.again(own.envelope, { ...shown, args, ...status, approvalId });
      this.asking.set(approvalId, own);
      return;
    }
    const content = { toolCallId, toolName, args, ...status, approvalId };
    const leaf = { envelope: this.say(entry, agent.key, 'tool-call', content), index: 0, total: 1 };
    this.asking.set(approvalId, leaf);
    if (call.agent !== undefined || own !== undefined) return;
    // The action is told like any other from here on, with what it says and how it ends.
    call.use = leaf;
    call.effect = { key: above(entry.key), attempts: undefined };
  }

  private answered({ id }: Approval, approved: boolean): void {
    const use = this.asking.get(id);
    if (use === undefined) return;
    this.asking.delete(id);
    const { approvalId: _, ...content } = use.envelope.content;
    use.envelope = this.again(use.envelope, { ...content, approvalStatus: approved ? 'approved' : 'rejected' });
  }

  private again(earlier: EventEnvelopeOf<'tool-call'>, content: ToolCallContent): EventEnvelopeOf<'tool-call'> {
    const envelope = { ...earlier, content };
    this.emit(envelope);
    return envelope;
  }

  private say<T extends EventType>(
    entry: Entry,
    generationId: string,
    type: T,
    content: EventContents[T],
    refusal?: Refusal,
  ): EventEnvelopeOf<T> {
    const { sessionId } = this;
    const id = `${entry.seq}.${this.made++}`;
    const envelope = { id, sessionId, generationId, type, content, createdAt: iso(entry.at) };
    this.emit(envelope as EventEnvelope, refusal);
    return envelope;
  }
}

/** The envelopes of entries that are all there, each as it stands at the end. */
export function conversationOf(sessionId: string, entries: Iterable<Entry>): EventEnvelope[] {
  const list: EventEnvelope[] = [];
  const places = new Map<string, number>();
  const conversation = new Conversation(sessionId, (envelope) => {
    const place = places.get(envelope.id);
    if (place !== undefined) list[place] = envelope;
    else if (envelope.type === 'tool-call') places.set(envelope.id, list.push(envelope) - 1);
    else list.push(envelope);
  });
  for (const entry of entries) conversation.apply(entry);
  return list;
}
