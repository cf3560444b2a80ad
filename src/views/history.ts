/**
 * The messages of earlier turns of a session, which an agent receives as context; folded from the entries, turn by
 * turn. A turn that is paused, cancelled or interrupted in a round gets placeholder results, because providers reject
 * tool calls without a result. Messages of sub-agents are left out.
 */
import type { Entry } from '../protocol/entry.js';
import type { ModelMessage } from '../protocol/model.js';
import {
  type AssistantReply,
  assistantMessage,
  promptOf,
  type RecordedToolCall,
  type ToolCallOutcome,
  toolMessage,
  toolResult,
  userMessage,
} from './messages.js';

/** The entry type that starts each round of an agent. A call with such an entry is an agent. */
export const ROUND_BEGUN = 'rondo.round.begun';
/** The entry type of a tool call that was refused before it started. */
export const TOOL_REFUSED = 'rondo.tool.refused';

/** The messages of one turn, and the state of its last round. */
interface TurnTranscript {
  readonly input: Entry;
  isAgent: boolean;
  readonly messages: ModelMessage[];
  /** The tool calls of the last reply, until all of them have ended. */
  openToolCalls: readonly RecordedToolCall[];
  /** The key of the group in which several tool calls run. */
  groupKey: string | undefined;
  /** The outcomes of the ended tool calls, by their index in the reply. */
  readonly outcomes: Map<number, ToolCallOutcome>;
  /** The key of the model call of the current round. */
  modelCallKey: string | undefined;
  /**
   * Earlier versions recorded the model calls of agents as effects of the agent itself. The result of the last attempt
   * at such an effect with layers, until the layers have settled it.
   */
  lastAttempt: { readonly key: string; readonly value: Entry['value'] } | undefined;
  /** The keys of the model calls, and of attempts at them, since the last reply. */
  readonly modelEffectKeys: Set<string>;
}

/** Folds the entries of a session into the messages of its agents. */
export class History {
  private readonly turns = new Map<string, TurnTranscript>();

  /** Applies the next entry of the session. The effect of a leaf call adds nothing to what the call contains. */
  apply(entry: Entry): void {
    const { key, type } = entry;
    const slash = key.indexOf('/');
    const root = slash === -1 ? key : key.slice(0, slash);
    const transcript = this.turns.get(root);
    if (transcript === undefined) {
      if (slash === -1 && type === 'call.started') this.turns.set(root, newTranscript(entry));
      return;
    }
    if (slash !== -1) this.applyStep(transcript, root, entry);
  }

  /** Returns the messages of all turns of agents so far. */
  messages(): ModelMessage[] {
    return [...this.turns.values()].flatMap((transcript) => (transcript.isAgent ? completeMessages(transcript) : []));
  }

  private applyStep(transcript: TurnTranscript, root: string, entry: Entry): void {
    const { key, type, value } = entry;
    const isOwnStep = key.lastIndexOf('/') === root.length;
    if (isOwnStep && type === ROUND_BEGUN) this.beginRound(transcript);
    else if (isOwnStep && type === 'call.started' && entry.bodyKind === 'model') transcript.modelCallKey = key;
    else if (transcript.modelCallKey !== undefined) this.applyModelCall(transcript, transcript.modelCallKey, entry);
    else if (isOwnStep && type === 'wait.settled') transcript.messages.push(userMessage(messageTextOf(value)));
    else if (entry.kind === 'model' && (type === 'effect.requested' || type === 'effect.opened'))
      transcript.modelEffectKeys.add(key);
    else if (type === 'effect.returned' && transcript.modelEffectKeys.has(key))
      this.applyReturned(transcript, isOwnStep, entry);
    else if (isOwnStep && type === 'effect.settled' && transcript.modelEffectKeys.has(key))
      this.applySettled(transcript, entry);
    else if (isOwnStep && type === 'group.opened' && transcript.openToolCalls.length > 0) transcript.groupKey = key;
    else if (isOwnStep && transcript.openToolCalls.length === 1) this.applyToolCallEnd(transcript, 0, entry);
    else if (transcript.groupKey !== undefined && key.startsWith(`${transcript.groupKey}/`))
      this.applyToolCallEnd(transcript, indexInGroup(transcript.groupKey, key), entry);
  }

  /** Applies an entry of the model call that runs. Until it ends, the agent has no other step. */
  private applyModelCall(transcript: TurnTranscript, modelCallKey: string, { key, type, value }: Entry): void {
    if (key !== modelCallKey) return;
    if (type === 'call.completed') addReply(transcript, value);
    if (type === 'call.completed' || type === 'call.errored') transcript.modelCallKey = undefined;
  }

  private beginRound(transcript: TurnTranscript): void {
    if (transcript.isAgent) return;
    transcript.isAgent = true;
    transcript.messages.push(userMessage(promptOf(transcript.input.value)));
  }

  private applyReturned(transcript: TurnTranscript, isOwnStep: boolean, { key, value }: Entry): void {
    if (isOwnStep) addReply(transcript, value);
    else transcript.lastAttempt = { key, value };
  }

  private applySettled(transcript: TurnTranscript, { attemptKey, value, error }: Entry): void {
    if (error !== undefined) return;
    addReply(transcript, attemptKey === undefined ? value : transcript.lastAttempt?.value);
    transcript.lastAttempt = undefined;
  }

  /**
   * Records the end of a tool call, and adds the results once all calls of the reply have ended. Other entries are
   * ignored.
   */
  private applyToolCallEnd(transcript: TurnTranscript, index: number | undefined, { type, value, error }: Entry): void {
    if (index === undefined) return;
    if (type === 'call.completed') transcript.outcomes.set(index, { value });
    else if (type === 'call.errored' && error !== undefined) transcript.outcomes.set(index, { error });
    else if (type === TOOL_REFUSED) {
      const { code = '', message = '' } = value as { readonly code?: string; readonly message?: string };
      transcript.outcomes.set(index, { error: { code, message } });
    } else return;
    if (transcript.outcomes.size < transcript.openToolCalls.length) return;
    transcript.messages.push(toolResultsOf(transcript));
    transcript.openToolCalls = [];
    transcript.groupKey = undefined;
    transcript.outcomes.clear();
  }
}

/** Returns the index of the branch whose first step has this key; undefined for other keys. */
function indexInGroup(group: string, key: string): number | undefined {
  const [index, step, ...deeper] = key.slice(group.length + 1).split('/');
  return step === '0' && deeper.length === 0 ? Number(index) : undefined;
}

function newTranscript(input: Entry): TurnTranscript {
  return {
    input,
    isAgent: false,
    messages: [],
    openToolCalls: [],
    groupKey: undefined,
    outcomes: new Map(),
    modelCallKey: undefined,
    lastAttempt: undefined,
    modelEffectKeys: new Set(),
  };
}

function addReply(transcript: TurnTranscript, value: Entry['value']): void {
  const reply = (value ?? { text: '' }) as unknown as AssistantReply;
  transcript.messages.push(assistantMessage(reply));
  transcript.openToolCalls = reply.toolCalls ?? [];
  transcript.modelEffectKeys.clear();
}

function messageTextOf(value: Entry['value']): string {
  const { text } = (value ?? {}) as { readonly text?: unknown };
  return typeof text === 'string' ? text : '';
}

/**
 * The placeholder result of an open tool call. Do not change its text: the digests of recorded prompts cover it, so a
 * change breaks the replay of open turns.
 */
const MISSING_RESULT: ToolCallOutcome = {
  error: { code: 'CANCELLED', message: 'This call has no result: the turn was stopped, or still waits.' },
};

function toolResultsOf({ openToolCalls, outcomes }: TurnTranscript): ModelMessage {
  return toolMessage(openToolCalls.map((call, index) => toolResult(call, outcomes.get(index) ?? MISSING_RESULT)));
}

/** Returns the messages of a turn, with placeholder results for open tool calls. */
function completeMessages(transcript: TurnTranscript): ModelMessage[] {
  return transcript.openToolCalls.length === 0
    ? transcript.messages
    : [...transcript.messages, toolResultsOf(transcript)];
}
