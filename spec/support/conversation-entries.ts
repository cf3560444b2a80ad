// Helpers for the tests of conversation views: scripted sessions, entries written by hand, and selections of envelopes.

import { memoryStore } from '../../src/adapters/memory/index.js';
import { LoopError } from '../../src/base/errors.js';
import { Session } from '../../src/kernel/session.js';
import type { Entry } from '../../src/protocol/entry.js';
import type { EventEnvelope, EventType } from '../../src/protocol/events.js';
import { Conversation, conversationOf } from '../../src/views/conversation.js';
import { ScriptedSession, SESSION } from './conversation-fixture.mjs';

/** A script of an agent, a tool or a composite. */
export type Script = Parameters<ScriptedSession['run']>[1];
type SessionOptions = ConstructorParameters<typeof ScriptedSession>[1];

/** An entry without its position. */
export type EntryDraft = Omit<Entry, 'seq' | 'at'>;

/** A tool that streams output before it returns. */
export const weather = { tool: 'weather', result: { sky: 'clear' }, streams: 'looking up… done' };

/** An agent that replies twice. */
export const scout: Script = { agent: 'scout', rounds: [{ text: 'Looking.' }, { text: 'Found it.' }] };

/** An agent that calls a tool and a sub-agent. */
export const lead: Script = {
  agent: 'lead',
  rounds: [
    {
      calls: [
        { id: 'c0', name: 'weather', runs: weather },
        { id: 'c1', name: 'scout', args: { prompt: 'go' }, runs: scout },
      ],
    },
    { text: 'Done.' },
  ],
};

const fail = (code: string, message: string, data?: Entry['value']) => new LoopError(code, message, data);

/** Returns a new session in memory. */
export function scriptedSession(options?: SessionOptions): ScriptedSession {
  return new ScriptedSession({ open: Session.open, store: memoryStore(), fail }, options);
}

/** Runs a script as the only turn of a session and returns the envelopes. */
export async function envelopesOf(
  script: Script,
  options?: SessionOptions,
  input?: Entry['value'],
): Promise<EventEnvelope[]> {
  const scripted = scriptedSession(options);
  await scripted.run('t', script, input);
  return conversationOf(SESSION, await scripted.stored());
}

/** Numbers drafts in order. */
export function entriesOf(...drafts: readonly EntryDraft[]): Entry[] {
  return drafts.map((draft, seq) => ({ ...draft, seq, at: 1000 + seq }));
}

/** Returns the type, generation and content of each envelope. */
export function summarize(envelopes: readonly EventEnvelope[]): readonly unknown[] {
  return envelopes.map(({ type, generationId, content }) => [type, generationId, content]);
}

/** Returns the envelopes of one type. */
export function ofType<T extends EventType>(envelopes: readonly EventEnvelope[], type: T) {
  return envelopes.filter((one): one is Extract<EventEnvelope, { type: T }> => one.type === type);
}

/** Returns all emitted envelopes, replaced ones included, each with the sequence number of the entry that caused it. */
export function emissionsOf(
  entries: readonly Entry[],
): { readonly envelope: EventEnvelope; readonly causeSeq: number }[] {
  const emissions: { envelope: EventEnvelope; causeSeq: number }[] = [];
  let causeSeq = 0;
  const conversation = new Conversation(SESSION, (envelope) => emissions.push({ envelope, causeSeq }));
  for (const entry of entries) {
    causeSeq = entry.seq;
    conversation.apply(entry);
  }
  return emissions;
}

export const callStarted = (key: string, name: string, value?: Entry['value']): EntryDraft => ({
  ...{ type: 'call.started', key, name },
  ...(value !== undefined && { value }),
});

export const roundBegun = (key: string): EntryDraft => ({ type: 'rondo.round.begun', key, value: { round: 0, at: 0 } });

export const modelRequested = (key: string): EntryDraft => ({
  type: 'effect.requested',
  key,
  kind: 'model',
  name: 'm',
  safety: 'idempotent',
});

export const effectReturned = (key: string, value: Entry['value']): EntryDraft => ({
  type: 'effect.returned',
  key,
  value,
});

/** The entries of an agent whose reply calls these tools. */
export const agentReplied = (key: string, name: string, ...tools: readonly string[]): EntryDraft[] => [
  callStarted(key, name, { prompt: name }),
  roundBegun(`${key}/0`),
  modelRequested(`${key}/1`),
  effectReturned(`${key}/1`, {
    text: name,
    toolCalls: tools.map((tool, i) => ({ id: `${name}-${i}`, name: tool, input: '{}' })),
  }),
];
