/**
 * The conversation view: folds the entries of a session into the envelopes that front ends display. The same entries
 * give the same envelopes, live and on replay. A call with a round is an agent; its key is the generation id. A turn
 * whose root is no agent has its own envelopes for its input and its outcome. The id of an envelope is the sequence
 * number of its entry and a zero-based index. An envelope with the id of an earlier one replaces it. Ended calls are
 * dropped.
 */
import { ownProperty, ownText } from '../base/own-property.js';
import { leafEffectKey } from '../journal/leaf-entries.js';
import type { Approval } from '../protocol/approval.js';
import type { Entry, ErrorRecord } from '../protocol/entry.js';
import type { EventContents, EventEnvelope, EventEnvelopeOf, EventType, ToolCallContent } from '../protocol/events.js';
import type { Json } from '../protocol/json.js';
import { ApprovalTracker } from './conversation/approval-tracker.js';
import {
  answerTextOf,
  summaryOf,
  textOf,
  toolCallsOf,
  triggerOf,
  truncateToSummary,
  userTextOf,
} from './conversation/content.js';
import {
  type AgentState,
  type ConversationCall,
  enclosingAgent,
  enclosingGenerationId,
  enclosingToolUse,
  type ToolUse,
  toolUseAt,
} from './conversation/conversation-call.js';
import { isDescendantKey, OpenCalls, parentKeyOf } from './conversation/open-calls.js';
import { applyReturned, applySettled, type EffectResult, trackEffect } from './conversation/tracked-effects.js';
import { ROUND_BEGUN, TOOL_REFUSED } from './history.js';
import { isoTime } from './iso-time.js';
import { isUserRejection, promptOf } from './messages.js';

/** The error code and the arguments of a tool call that was refused before it started; emitted with its envelope. */
export interface ToolRefusal {
  readonly code: string;
  readonly args?: Json;
}

const PARENT_ENDED: ErrorRecord = { code: 'CANCELLED', message: 'The enclosing call ended before this call.' };
const UNKNOWN_FAILURE: ErrorRecord = { code: 'EXECUTION_FAILED', message: '' };

/** Emits the envelopes of a session, entry by entry. */
export class Conversation {
  private readonly sessionId: string;
  private readonly emit: (envelope: EventEnvelope, refusal?: ToolRefusal) => void;
  private readonly calls = new OpenCalls<ConversationCall>();
  private readonly approvalTracker: ApprovalTracker;
  /** The tool use that displays each pending approval, by approval id. */
  private readonly pendingApprovals = new Map<string, ToolUse>();
  /** The open root call that is either an agent or a plain loop: its next entry tells. */
  private unannouncedRoot: ConversationCall | undefined;
  /** The number of envelopes that the current entry has emitted. */
  private envelopesOfEntry = 0;

  constructor(sessionId: string, emit: (envelope: EventEnvelope, refusal?: ToolRefusal) => void) {
    this.sessionId = sessionId;
    this.emit = emit;
    this.approvalTracker = new ApprovalTracker(sessionId, this.calls, {
      onRequested: (approval, entry) => this.emitApprovalRequest(approval, entry),
      onAnswered: (approval, { approved }) => this.emitApprovalAnswer(approval, approved),
      // A call whose approval was abandoned did not run, so it is displayed as rejected.
      onAbandoned: (approval) => this.emitApprovalAnswer(approval, false),
    });
  }

  /**
   * Applies the next entry of the session and emits its envelopes. If the effect of a leaf call ends with the call, it
   * adds nothing to what the call contains.
   */
  apply(entry: Entry): void {
    const { type } = entry;
    this.envelopesOfEntry = 0;
    if (this.unannouncedRoot !== undefined) this.announceRoot(this.unannouncedRoot, entry);
    this.approvalTracker.apply(entry);
    if (type === 'call.started') this.startCall(entry);
    else if (type === 'call.completed' || type === 'call.errored') this.endCall(entry);
    else if (type === 'effect.opened' || type === 'effect.requested') trackEffect(this.calls, entry);
    else if (type === 'effect.returned') this.applyEffectResult(applyReturned(this.calls, entry), entry);
    else if (type === 'effect.settled') this.applyEffectResult(applySettled(this.calls, entry), entry);
    else if (type === ROUND_BEGUN) this.beginRound(entry);
    else if (type === TOOL_REFUSED) this.emitRefusal(entry);
    else if (type === 'signal.received') this.emitUserMessage(entry);
    else if (type === 'cancel.requested') this.emitAbort(entry);
    else if (type === 'race.won') this.endRaceLosers(entry);
  }

  private startCall(entry: Entry): void {
    const { key, name = '', value, at, validationMs = 0, bodyKind, kind, safety } = entry;
    const parent = this.calls.enclosing(key);
    if (parent === undefined && key.includes('/')) return;
    // The model call of an agent is displayed as the reply of the agent.
    if (bodyKind === 'model') return;
    const isLeaf = safety !== undefined;
    const toolUse = toolUseAt(parent, key);
    const call: ConversationCall = {
      key,
      name,
      bodyKind,
      parent,
      openChildren: 0,
      openEffects: 0,
      startedAt: at - validationMs,
      input: value,
      agent: undefined,
      toolUse,
      trackedEffect:
        isLeaf && toolUse !== undefined && kind === 'tool'
          ? { key: leafEffectKey(key), attemptResults: undefined }
          : undefined,
      streamedOutput: '',
    };
    this.calls.add(call);
    if (parent !== undefined || bodyKind === 'agent') return;
    // Without a kind, the call can be an agent that an earlier version recorded.
    if (bodyKind === undefined && !isLeaf) this.unannouncedRoot = call;
    else this.emitLoopStart(call, entry);
  }

  /** Emits the start of a root call without a kind, unless the next entry of its turn begins the round of an agent. */
  private announceRoot(root: ConversationCall, entry: Entry): void {
    const { key, type } = entry;
    if (key !== root.key && !isDescendantKey(key, root.key)) return;
    this.unannouncedRoot = undefined;
    if (type !== ROUND_BEGUN || parentKeyOf(key) !== root.key) this.emitLoopStart(root, entry);
  }

  private emitLoopStart({ key, name, input }: ConversationCall, entry: Entry): void {
    const content = { triggeredBy: name };
    const instructions = input === undefined ? {} : { instructions: textOf(input) };
    this.emitEnvelope(entry, key, 'loop-triggered', { ...content, ...instructions });
  }

  private endCall(entry: Entry): void {
    const call = this.calls.get(entry.key);
    if (call === undefined) {
      this.endModelCall(entry);
      return;
    }
    if (call.openChildren > 0)
      for (const descendant of this.calls.descendantsOf(call.key)) this.closeCall(descendant, entry, PARENT_ENDED);
    this.closeCall(call, entry, entry.type === 'call.errored' ? (entry.error ?? UNKNOWN_FAILURE) : undefined);
  }

  /** Emits the reply of a model call. Only model calls of agents are not among the open calls. */
  private endModelCall(entry: Entry): void {
    const call = this.calls.get(parentKeyOf(entry.key));
    if (call?.agent !== undefined && entry.type === 'call.completed')
      this.emitReply(call, call.agent, entry, entry.value);
  }

  /** Closes the calls in the branches that lost a race: their ends are not journaled. */
  private endRaceLosers(entry: Entry): void {
    const { key, winnerIndex } = entry;
    if ((this.calls.enclosing(key)?.openChildren ?? 0) === 0) return;
    for (const loser of this.calls.descendantsOf(key, `${key}/${winnerIndex}`))
      this.closeCall(loser, entry, PARENT_ENDED);
  }

  private closeCall(call: ConversationCall, entry: Entry, error: ErrorRecord | undefined): void {
    const { agent, toolUse, parent } = call;
    const output = error === undefined ? entry.value : undefined;
    if (agent !== undefined && parent !== undefined) this.emitChildEnd(call, agent, entry, error, output);
    if (toolUse !== undefined) this.emitToolEnd(call, toolUse, entry, error, output);
    if (parent === undefined && error !== undefined && error.code !== 'CANCELLED')
      this.emitEnvelope(entry, call.key, 'generation-failure', { error: `${error.code}: ${error.message}` });
    else if (parent === undefined && error === undefined && agent === undefined && toolUse === undefined)
      this.emitLoopResult(call, entry);
    this.calls.remove(call);
  }

  /** Emits the output of a root call that is no agent: as text if a model wrote it, otherwise as the result of a tool. */
  private emitLoopResult({ key, name, bodyKind }: ConversationCall, entry: Entry): void {
    const { value = null } = entry;
    if (bodyKind === 'prompt') this.emitEnvelope(entry, key, 'assistant-message', { text: answerTextOf(value) });
    else this.emitEnvelope(entry, key, 'tool-result', { toolCallId: key, toolName: name, result: value });
  }

  private emitToolEnd(
    call: ConversationCall,
    { envelope }: ToolUse,
    entry: Entry,
    error?: ErrorRecord,
    result: Json = null,
  ): void {
    const { generationId } = envelope;
    const { toolCallId, toolName } = envelope.content;
    if (error === undefined) {
      const content = { toolCallId, toolName, result };
      this.emitEnvelope(
        entry,
        generationId,
        'tool-result',
        call.streamedOutput === '' ? content : { ...content, output: call.streamedOutput },
      );
      return;
    }
    const content = { toolCallId, toolName, error: error.message };
    this.emitEnvelope(
      entry,
      generationId,
      'tool-error',
      isUserRejection(error) ? { ...content, isUserRejection: true } : content,
    );
  }

  private emitChildEnd(
    call: ConversationCall,
    agent: AgentState,
    entry: Entry,
    error?: ErrorRecord,
    output?: Json,
  ): void {
    const { index, total } = enclosingToolUse(call) ?? { index: 0, total: 1 };
    const parentGenerationId = enclosingGenerationId(call);
    const summary = summaryOf(output, agent.lastText);
    this.emitEnvelope(entry, parentGenerationId, 'child-generation', {
      item: call.name,
      index,
      total,
      durationMs: Math.max(0, entry.at - call.startedAt),
      parentGenerationId,
      childGenerationId: call.key,
      status: error === undefined ? 'ok' : 'error',
      ...(summary !== '' && { summary }),
    });
  }

  /** Marks a call as an agent at its first round and emits the prompt, the trigger or the call that started it. */
  private beginRound(entry: Entry): void {
    const call = this.calls.get(parentKeyOf(entry.key));
    if (call === undefined || call.agent !== undefined) return;
    call.agent = { lastText: '', toolUses: [] };
    if (call.parent !== undefined) {
      const triggeredBy = (enclosingAgent(call) ?? call.parent).name;
      const parentGenerationId = enclosingGenerationId(call);
      const instructions = promptOf(call.input);
      this.emitEnvelope(entry, call.key, 'loop-triggered', { triggeredBy, parentGenerationId, instructions });
      return;
    }
    const trigger = triggerOf(call.input);
    if (trigger !== undefined) this.emitEnvelope(entry, call.key, 'trigger', trigger);
    if (trigger === undefined || typeof ownProperty(call.input, 'prompt') === 'string')
      this.emitEnvelope(entry, call.key, 'user-message', { text: promptOf(call.input) });
  }

  private emitUserMessage(entry: Entry): void {
    const { name, value } = entry;
    if (name !== 'steer' && name !== 'queue') return;
    this.emitEnvelope(entry, this.calls.latestRoot()?.key ?? '', 'user-message', { text: userTextOf(value) });
  }

  private emitAbort(entry: Entry): void {
    const { key } = entry;
    if (this.calls.get(key) !== undefined) this.emitEnvelope(entry, key, 'user-abort', { generationId: key });
  }

  private applyEffectResult(result: EffectResult | undefined, entry: Entry): void {
    if (result === undefined) return;
    const { call, value } = result;
    if (call.agent === undefined) call.streamedOutput = ownText(value, 'streamedOutput');
    else this.emitReply(call, call.agent, entry, value);
  }

  private emitReply(
    { key, name, parent }: ConversationCall,
    agent: AgentState,
    entry: Entry,
    reply: Json | undefined,
  ): void {
    const reasoning = ownText(reply, 'reasoning');
    const durationMs = ownProperty(reply, 'reasoningMs');
    const text = ownText(reply, 'text');
    const reasoningContent = typeof durationMs === 'number' ? { text: reasoning, durationMs } : { text: reasoning };
    if (reasoning !== '') this.emitEnvelope(entry, key, 'reasoning', reasoningContent);
    if (text !== '') agent.lastText = truncateToSummary(text);
    if (text !== '' && parent === undefined) this.emitEnvelope(entry, key, 'assistant-message', { text });
    else if (text !== '') this.emitEnvelope(entry, key, 'other-agent-message', { text, agent: name });
    const contents = toolCallsOf(reply);
    agent.toolUses = contents.map((content, index) => {
      return { envelope: this.emitEnvelope(entry, key, 'tool-call', content), index, total: contents.length };
    });
  }

  /**
   * Emits the error of a tool call without a call entry: the tool is unknown or not admitted, or its arguments are
   * invalid.
   */
  private emitRefusal(entry: Entry): void {
    const { key, value } = entry;
    const call = this.calls.enclosing(key);
    if (call?.agent === undefined) return;
    const code = ownText(value, 'code');
    const args = toolUseAt(call, key)?.envelope.content.args;
    const content = {
      toolCallId: ownText(value, 'id'),
      toolName: ownText(value, 'name'),
      error: ownText(value, 'message'),
    };
    this.emitEnvelope(entry, call.key, 'tool-error', content, args === undefined ? { code } : { code, args });
  }

  /** Displays an approval on the tool call of the model, or as a tool call of its own if a deeper call requests it. */
  private emitApprovalRequest(approval: Approval, entry: Entry): void {
    const call = this.calls.get(approval.callId) ?? this.calls.enclosing(approval.callId);
    if (call === undefined) return;
    const generationId = call.agent === undefined ? enclosingGenerationId(call) : call.key;
    const status = { approvalStatus: 'pending_approval', approvalDescription: approval.description } as const;
    const { id: approvalId, callId: toolCallId, tool: toolName, arguments: args } = approval;
    const toolUse = call.agent === undefined ? toolUseAt(call.parent, call.key) : undefined;
    const displayed = toolUse?.envelope.content;
    // An effect of another name is not the tool itself, but something that its code does.
    const isEffectOfCall = call.name === toolName;
    const isFree = displayed?.approvalStatus !== 'pending_approval';
    if (toolUse !== undefined && displayed !== undefined && isEffectOfCall && isFree) {
      toolUse.envelope = this.replaceEnvelope(toolUse.envelope, { ...displayed, args, ...status, approvalId });
      this.pendingApprovals.set(approvalId, toolUse);
      return;
    }
    const content = { toolCallId, toolName, args, ...status, approvalId };
    const deepUse = { envelope: this.emitEnvelope(entry, generationId, 'tool-call', content), index: 0, total: 1 };
    this.pendingApprovals.set(approvalId, deepUse);
    if (call.agent !== undefined || toolUse !== undefined) return;
    // From here on the deeper call emits its output and its end like a tool call of the model.
    call.toolUse = deepUse;
    call.trackedEffect = { key: parentKeyOf(entry.key), attemptResults: undefined };
  }

  private emitApprovalAnswer({ id }: Approval, approved: boolean): void {
    const toolUse = this.pendingApprovals.get(id);
    if (toolUse === undefined) return;
    this.pendingApprovals.delete(id);
    const approvalStatus = approved ? 'approved' : 'rejected';
    toolUse.envelope = this.replaceEnvelope(toolUse.envelope, { ...toolUse.envelope.content, approvalStatus });
  }

  private replaceEnvelope(
    earlier: EventEnvelopeOf<'tool-call'>,
    content: ToolCallContent,
  ): EventEnvelopeOf<'tool-call'> {
    const envelope = { ...earlier, content };
    this.emit(envelope);
    return envelope;
  }

  private emitEnvelope<T extends EventType>(
    entry: Entry,
    generationId: string,
    type: T,
    content: EventContents[T],
    refusal?: ToolRefusal,
  ): EventEnvelopeOf<T> {
    const { sessionId } = this;
    const id = `${entry.seq}.${this.envelopesOfEntry++}`;
    const envelope = { id, sessionId, generationId, type, content, createdAt: isoTime(entry.at) };
    this.emit(envelope as EventEnvelope, refusal);
    return envelope;
  }
}

/** Returns the envelopes of a session in the order of their first versions, each in its last version. */
export function conversationOf(sessionId: string, entries: Iterable<Entry>): EventEnvelope[] {
  const envelopes: EventEnvelope[] = [];
  /** The index of each tool call: only tool calls are replaced. */
  const toolCallIndexes = new Map<string, number>();
  const conversation = new Conversation(sessionId, (envelope) => {
    const index = toolCallIndexes.get(envelope.id);
    if (index !== undefined) envelopes[index] = envelope;
    else if (envelope.type === 'tool-call') toolCallIndexes.set(envelope.id, envelopes.push(envelope) - 1);
    else envelopes.push(envelope);
  });
  for (const entry of entries) conversation.apply(entry);
  return envelopes;
}
