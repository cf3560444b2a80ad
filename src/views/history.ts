/**
 * What earlier turns of a session said, as messages for the next one: folded from the entries, turn by turn. A turn that
 * stands in the middle of a round (paused, stopped, dead) is told with what is missing said to be missing, because no
 * provider takes a call of a tool without its result. What sub-agents said among themselves is not part of it.
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

/** The type that each round of an agent begins with; a call that has one is an agent. */
export const ROUND_BEGUN = 'rondo.round.begun';
/** The type under which a call of a tool is recorded that could not even be begun. */
export const TOOL_REFUSED = 'rondo.tool.refused';

/** One turn of an agent. */
interface TurnTranscript {
  readonly input: Entry;
  isAgent: boolean;
  readonly messages: ModelMessage[];
  /** The calls of the last reply, where they run, and how they ended; while they do. */
  openToolCalls: readonly RecordedToolCall[];
  groupKey: string | undefined;
  readonly outcomes: Map<number, ToolCallOutcome>;
  /** The last answer of a model, of a step with layers, until the layers have settled it. */
  lastAttempt: { readonly key: string; readonly value: Entry['value'] } | undefined;
  readonly modelEffectKeys: Set<string>;
}

export class History {
  private readonly turns = new Map<string, TurnTranscript>();

  apply(entry: Entry): void {
    const { key, type } = entry;
    const slash = key.indexOf('/');
    const root = slash === -1 ? key : key.slice(0, slash);
    const told = this.turns.get(root);
    if (told === undefined) {
      if (slash === -1 && type === 'call.started') this.turns.set(root, newTranscript(entry));
      return;
    }
    if (slash !== -1) this.applyStep(told, root, entry);
  }

  /** All that was said so far. */
  messages(): ModelMessage[] {
    return [...this.turns.values()].flatMap((told) => (told.isAgent ? completeMessages(told) : []));
  }

  private applyStep(told: TurnTranscript, root: string, entry: Entry): void {
    const { key, type, value } = entry;
    const own = key.lastIndexOf('/') === root.length;
    if (own && type === ROUND_BEGUN) this.beginRound(told);
    else if (own && type === 'wait.settled') told.messages.push(userMessage(messageTextOf(value)));
    else if (entry.kind === 'model' && (type === 'effect.requested' || type === 'effect.opened'))
      told.modelEffectKeys.add(key);
    else if (type === 'effect.returned' && told.modelEffectKeys.has(key)) this.applyReturned(told, own, entry);
    else if (own && type === 'effect.settled' && told.modelEffectKeys.has(key)) this.applySettled(told, entry);
    else if (own && type === 'group.opened' && told.openToolCalls.length > 0) told.groupKey = key;
    else if (own && told.openToolCalls.length === 1) this.applyToolCallEnd(told, 0, entry);
    else if (told.groupKey !== undefined && key.startsWith(`${told.groupKey}/`))
      this.applyToolCallEnd(told, indexInGroup(told.groupKey, key), entry);
  }

  private beginRound(told: TurnTranscript): void {
    if (told.isAgent) return;
    told.isAgent = true;
    told.messages.push(userMessage(promptOf(told.input.value)));
  }

  private applyReturned(told: TurnTranscript, own: boolean, { key, value }: Entry): void {
    if (own) addReply(told, value);
    else told.lastAttempt = { key, value };
  }

  private applySettled(told: TurnTranscript, { attemptKey, value, error }: Entry): void {
    if (error !== undefined) return;
    addReply(told, attemptKey === undefined ? value : told.lastAttempt?.value);
    told.lastAttempt = undefined;
  }

  /** Something about a call of the last reply, which may be its end; a call alone is no branch of a group. */
  private applyToolCallEnd(told: TurnTranscript, index: number | undefined, { type, value, error }: Entry): void {
    if (index === undefined) return;
    if (type === 'call.completed') told.outcomes.set(index, { value });
    else if (type === 'call.errored' && error !== undefined) told.outcomes.set(index, { error });
    else if (type === TOOL_REFUSED) {
      const { code = '', message = '' } = value as { readonly code?: string; readonly message?: string };
      told.outcomes.set(index, { error: { code, message } });
    } else return;
    if (told.outcomes.size < told.openToolCalls.length) return;
    told.messages.push(toolResultsOf(told));
    told.openToolCalls = [];
    told.groupKey = undefined;
    told.outcomes.clear();
  }
}

/** Which call of a group this is the step of, if it is the step of one. */
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
    lastAttempt: undefined,
    modelEffectKeys: new Set(),
  };
}

function addReply(told: TurnTranscript, value: Entry['value']): void {
  const said = (value ?? { text: '' }) as unknown as AssistantReply;
  told.messages.push(assistantMessage(said));
  told.openToolCalls = said.toolCalls ?? [];
  told.modelEffectKeys.clear();
}

function messageTextOf(value: Entry['value']): string {
  const { text } = (value ?? {}) as { readonly text?: unknown };
  return typeof text === 'string' ? text : '';
}

const MISSING_RESULT: ToolCallOutcome = {
  error: { code: 'CANCELLED', message: 'This call has no result: the turn was stopped, or still waits.' },
};

function toolResultsOf({ openToolCalls, outcomes }: TurnTranscript): ModelMessage {
  return toolMessage(openToolCalls.map((call, index) => toolResult(call, outcomes.get(index) ?? MISSING_RESULT)));
}

function completeMessages(told: TurnTranscript): ModelMessage[] {
  return told.openToolCalls.length === 0 ? told.messages : [...told.messages, toolResultsOf(told)];
}
