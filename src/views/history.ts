/**
 * What earlier turns of a session said, as messages for the next one: folded from the entries, turn by turn. A turn that
 * stands in the middle of a round (paused, stopped, dead) is told with what is missing said to be missing, because no
 * provider takes a call of a tool without its result. What sub-agents said among themselves is not part of it.
 */
import type { Entry } from '../protocol/entry.js';
import type { ModelMessage } from '../protocol/model.js';
import {
  type AskedCall,
  assistantMessage,
  promptOf,
  type Said,
  type ToolEnd,
  toolMessage,
  toolResult,
  userMessage,
} from './messages.js';

/** The type that each round of an agent begins with; a call that has one is an agent. */
export const ROUND = 'rondo.round.begun';
/** The type under which a call of a tool is recorded that could not even be begun. */
export const REFUSED = 'rondo.tool.refused';

/** One turn of an agent. */
interface Told {
  readonly input: Entry;
  agent: boolean;
  readonly messages: ModelMessage[];
  /** The calls of the last reply, where they run, and how they ended; while they do. */
  calls: readonly AskedCall[];
  group: string | undefined;
  readonly ends: Map<number, ToolEnd>;
  /** The last answer of a model, of a step with layers, until the layers have settled it. */
  passing: { readonly key: string; readonly value: Entry['value'] } | undefined;
  readonly models: Set<string>;
}

export class History {
  private readonly turns = new Map<string, Told>();

  apply(entry: Entry): void {
    const { key, type } = entry;
    const slash = key.indexOf('/');
    const root = slash === -1 ? key : key.slice(0, slash);
    const told = this.turns.get(root);
    if (told === undefined) {
      if (slash === -1 && type === 'call.started') this.turns.set(root, begun(entry));
      return;
    }
    if (slash !== -1) this.step(told, root, entry);
  }

  /** All that was said so far. */
  messages(): ModelMessage[] {
    return [...this.turns.values()].flatMap((told) => (told.agent ? closed(told) : []));
  }

  private step(told: Told, root: string, entry: Entry): void {
    const { key, type, value } = entry;
    const own = key.lastIndexOf('/') === root.length;
    if (own && type === ROUND) this.round(told);
    else if (own && type === 'wait.settled') told.messages.push(userMessage(textOf(value)));
    else if (entry.kind === 'model' && (type === 'effect.requested' || type === 'effect.asked')) told.models.add(key);
    else if (type === 'effect.returned' && told.models.has(key)) this.returned(told, own, entry);
    else if (own && type === 'effect.settled' && told.models.has(key)) this.settled(told, entry);
    else if (own && type === 'group.opened' && told.calls.length > 0) told.group = key;
    else if (own && told.calls.length === 1) this.ended(told, 0, entry);
    else if (told.group !== undefined && key.startsWith(`${told.group}/`))
      this.ended(told, placeIn(told.group, key), entry);
  }

  private round(told: Told): void {
    if (told.agent) return;
    told.agent = true;
    told.messages.push(userMessage(promptOf(told.input.value)));
  }

  private returned(told: Told, own: boolean, { key, value }: Entry): void {
    if (own) reply(told, value);
    else told.passing = { key, value };
  }

  private settled(told: Told, { from, value, error }: Entry): void {
    if (error !== undefined) return;
    reply(told, from === undefined ? value : told.passing?.value);
    told.passing = undefined;
  }

  /** Something about a call of the last reply, which may be its end; a call alone is no branch of a group. */
  private ended(told: Told, index: number | undefined, { type, value, error }: Entry): void {
    if (index === undefined) return;
    if (type === 'call.completed') told.ends.set(index, { value });
    else if (type === 'call.errored' && error !== undefined) told.ends.set(index, { error });
    else if (type === REFUSED) {
      const { code = '', message = '' } = value as { readonly code?: string; readonly message?: string };
      told.ends.set(index, { error: { code, message } });
    } else return;
    if (told.ends.size < told.calls.length) return;
    told.messages.push(resultsOf(told));
    told.calls = [];
    told.group = undefined;
    told.ends.clear();
  }
}

/** Which call of a group this is the step of, if it is the step of one. */
function placeIn(group: string, key: string): number | undefined {
  const [index, step, ...deeper] = key.slice(group.length + 1).split('/');
  return step === '0' && deeper.length === 0 ? Number(index) : undefined;
}

function begun(input: Entry): Told {
  return {
    input,
    agent: false,
    messages: [],
    calls: [],
    group: undefined,
    ends: new Map(),
    passing: undefined,
    models: new Set(),
  };
}

function reply(told: Told, value: Entry['value']): void {
  const said = (value ?? { text: '' }) as unknown as Said;
  told.messages.push(assistantMessage(said));
  told.calls = said.toolCalls ?? [];
  told.models.clear();
}

function textOf(value: Entry['value']): string {
  const { text } = (value ?? {}) as { readonly text?: unknown };
  return typeof text === 'string' ? text : '';
}

const MISSING: ToolEnd = {
  error: { code: 'CANCELLED', message: 'This call has no result: the turn was stopped, or still waits.' },
};

function resultsOf({ calls, ends }: Told): ModelMessage {
  return toolMessage(calls.map((call, index) => toolResult(call, ends.get(index) ?? MISSING)));
}

function closed(told: Told): ModelMessage[] {
  return told.calls.length === 0 ? told.messages : [...told.messages, resultsOf(told)];
}
