import fc from 'fast-check';
import { expect } from 'vitest';
import { emissionsOf, ofType, type Script, scriptedSession } from '../../spec/support/conversation-entries.js';
import { type ScriptedSession, SESSION } from '../../spec/support/conversation-fixture.mjs';
import { retryingLayer } from '../../spec/support/recorded-agents.mjs';
import { verifies } from '../../spec/verifies.js';
import { EVENT_TYPES, type EventEnvelope } from '../protocol/events.js';
import { conversationOf } from './conversation.js';

/** Merges envelopes as a client does: an envelope with the id of an earlier one replaces it. */
function mergeById(list: readonly EventEnvelope[], more: readonly EventEnvelope[]): EventEnvelope[] {
  const merged = [...list];
  for (const envelope of more) {
    const index = merged.findIndex(({ id }) => id === envelope.id);
    if (index === -1) merged.push(envelope);
    else merged[index] = envelope;
  }
  return merged;
}

/** Scripts of agents with all features, a few levels deep. */
const scripts = fc.letrec<{ tool: Script; flow: Script; agent: Script; any: Script }>((tie) => ({
  tool: fc
    .record({
      tool: fc.constantFrom('weather', 'quiet', 'gated-a', 'gated-b'),
      result: fc
        .jsonValue({ maxDepth: 1 })
        .map((value) => JSON.parse(JSON.stringify(value).replaceAll('__proto__', 'p'))),
    })
    .chain((tool) =>
      fc.constantFrom<Script>(
        tool,
        { ...tool, streams: 'so so' },
        { ...tool, fails: { code: 'TOOL_FAILED', message: 'm' } },
      ),
    ),
  flow: fc.record({
    composite: fc.constant('flow'),
    steps: fc.array(tie('any'), { minLength: 1, maxLength: 2 }),
    race: fc.boolean(),
  }),
  agent: fc
    .record({
      agent: fc.constantFrom('lead', 'scout'),
      rounds: fc.array(
        fc.record({
          text: fc.constantFrom('', 'some words', 'more'),
          reasoning: fc.constantFrom('', 'thinking'),
          calls: fc
            .array(tie('any'), { maxLength: 3 })
            .map((all) =>
              all.map((runs, i) => ({ id: `c${i}`, name: nameOf(runs), args: { i }, ...(i === 2 ? {} : { runs }) })),
            ),
          waitsFor: fc.subarray(['steer', 'queue']),
        }),
        { minLength: 1, maxLength: 2 },
      ),
    })
    .chain((agent) =>
      fc.constantFrom<Script>(agent, agent, { ...agent, fails: { code: 'BUDGET_EXHAUSTED', message: 'm' } }),
    ),
  any: fc.oneof({ maxDepth: 3, depthIdentifier: 'script' }, tie('tool'), tie('flow'), tie('agent')),
}));

function nameOf(script: Script): string {
  if ('tool' in script) return script.tool;
  return 'agent' in script ? script.agent : script.composite;
}

/** Runs scripts in one session. With `cancelFirst`, the first turn is cancelled if it pauses. */
async function runAll(all: readonly Script[], cancelFirst: boolean): Promise<ScriptedSession> {
  const answer = (id: string) => ({ approved: id.length % 3 !== 0, by: 'bob', at: 1 });
  const scripted = scriptedSession({ gated: ['gated-a', 'gated-b'], model: retryingLayer, answer });
  for (const [i, script] of all.entries()) {
    if (cancelFirst && i === 0 && (await scripted.runUntilPause('t0', script)).status === 'paused')
      await (await scripted.session()).cancel('t0', 'enough');
    await scripted.run(`t${i}`, script);
  }
  return scripted;
}

verifies(
  'agent.reconnect',
  'a client that reconnects at any entry ends with the complete conversation',
  async () => {
    const types = new Set<string>();
    await fc.assert(
      fc.asyncProperty(
        fc.array(scripts.agent, { minLength: 1, maxLength: 2 }),
        fc.boolean(),
        fc.nat(),
        async (all, cancelFirst, at) => {
          const scripted = await runAll(all, cancelFirst);
          const entries = await scripted.stored();
          const complete = conversationOf(SESSION, entries);
          for (const { type } of complete) types.add(type);
          const live = emissionsOf(scripted.live).map(({ envelope }) => envelope);
          expect(mergeById([], live), 'the live conversation differs').toEqual(complete);
          const cut = at % (entries.length + 1);
          const rest = emissionsOf(entries).filter(({ causeSeq }) => causeSeq >= cut);
          const before = conversationOf(SESSION, entries.slice(0, cut));
          expect(
            mergeById(
              before,
              rest.map(({ envelope }) => envelope),
            ),
          ).toEqual(complete);
          expectSound(complete);
        },
      ),
      { numRuns: 150 },
    );
    expect([...types].sort()).toEqual(EVENT_TYPES.filter((type) => type !== 'trigger').sort());
  },
  120_000,
);

/** Checks the invariants of a session whose turns have ended. */
function expectSound(envelopes: readonly EventEnvelope[]): void {
  const ids = envelopes.map(({ id }) => id.split('.').map(Number) as [number, number]);
  for (let i = 1; i < ids.length; i++) {
    const [[a, b], [c, d]] = [ids[i - 1] ?? [0, 0], ids[i] ?? [0, 0]];
    expect(a < c || (a === c && b < d), 'envelope ids do not increase').toBe(true);
  }
  const calls = ofType(envelopes, 'tool-call').map(
    ({ generationId, content }) => `${generationId} ${content.toolCallId}`,
  );
  const ends = [...ofType(envelopes, 'tool-result'), ...ofType(envelopes, 'tool-error')];
  const ended = ends.map(({ generationId, content }) => `${generationId} ${content.toolCallId}`);
  for (const one of ended) expect(calls).toContain(one);
  for (const { content } of ofType(envelopes, 'tool-call')) {
    expect(content.approvalStatus).not.toBe('pending_approval');
    expect(content.approvalId === undefined).toBe(content.approvalStatus === undefined);
  }
  expect(ofType(envelopes, 'loop-triggered')).toHaveLength(ofType(envelopes, 'child-generation').length);
}
