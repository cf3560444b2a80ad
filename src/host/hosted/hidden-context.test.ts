/** What a turn of a hosted loop sees of earlier turns: nothing that is not declared, recorded and sealed. */
import { createHash } from 'node:crypto';
import { expect } from 'vitest';
import { onlyPending } from '../../../spec/support/approval-fixture.js';
import { hostOf, prompt, textProvider, tool } from '../../../spec/support/host-fixture.js';
import { counter, type HostedFixture, hostedFixture, START } from '../../../spec/support/hosted-fixture.js';
import { ASKING } from '../../../spec/support/hosted-stops.js';
import { agentDef, replyProvider } from '../../../spec/support/scripted-agents.js';
import { verifies } from '../../../spec/verifies.js';
import { memoryStore } from '../../adapters/memory/index.js';
import { canonicalJson } from '../../json/canonical.js';
import type { HostedLoopDocument, HostedTurnSettings, SeenHistory } from '../../protocol/hosted-loop.js';
import type { Json } from '../../protocol/json.js';
import type { ReceiptPredicate } from '../../protocol/receipt.js';
import { receiptsIn } from '../../views/receipt/sealed-receipts.js';
import { historyBefore } from '../turn-opening.js';

const TEXTS = ['The secret is 41.', 'The secret is 42.', 'The secret is 43.'];

const chat = (turn?: HostedTurnSettings): HostedLoopDocument =>
  counter({ loop: 'chat', input: { prompt: 'What is it?' }, ...(turn && { turn }) });

/** Runs three turns of an agent, and returns the requests that its model got. */
async function threeTurns(turn?: HostedTurnSettings) {
  const provider = textProvider(TEXTS);
  const fixture = hostedFixture({ definitions: [agentDef('chat')], providers: [provider] });
  await fixture.start(chat(turn));
  await fixture.work();
  expect((await fixture.host.hosted.turns('counter')).map(({ status }) => status)).toEqual(['ok', 'ok', 'ok']);
  return { fixture, requests: provider.requests.map((request) => String(request.prompt)) };
}

/** Returns the opening and the signed statement of a turn. */
async function recordOf({ host }: HostedFixture, number: number) {
  const turn = (await host.hosted.turns('counter'))[number - 1];
  const { entries, identity } = await host.archive.get(turn?.turnId ?? '');
  const opening = entries.find(({ type, key }) => type === 'rondo.turn.opened' && key === `#${identity.turnId}`);
  const receipt = receiptsIn(entries).findLast((each) => each.turn === identity.turnId);
  const statement = JSON.parse(Buffer.from(receipt?.envelope.payload ?? '', 'base64').toString());
  const predicate = statement.predicate as ReceiptPredicate;
  return { opening: opening?.value as { seen?: SeenHistory; history?: string }, predicate, entries, identity };
}

for (const turn of [undefined, {}, { history: 'none' }] as const)
  verifies(
    'hosted.context',
    `an agent sees nothing of the turn before, with turn = ${JSON.stringify(turn)}`,
    async () => {
      const { fixture, requests } = await threeTurns(turn);
      expect(requests).toHaveLength(3);
      for (const request of requests) expect(request).not.toContain('secret');
      expect(new Set(requests).size, 'each turn sees the same').toBe(1);
      const { opening, predicate } = await recordOf(fixture, 2);
      expect([opening.history, opening.seen, predicate.context ?? []]).toEqual(['none', undefined, []]);
    },
  );

verifies('hosted.context', 'with history = "session", an agent sees the messages of the turns before', async () => {
  const { requests } = await threeTurns({ history: 'session' });
  expect(requests.map((request) => TEXTS.filter((text) => request.includes(text)))).toEqual([
    [],
    TEXTS.slice(0, 1),
    TEXTS.slice(0, 2),
  ]);
});

verifies('hosted.context', 'what an agent sees of the turns before is recorded and sealed, with its size', async () => {
  const { fixture } = await threeTurns({ history: 'session' });
  for (const number of [1, 2, 3]) {
    const { opening, predicate, entries, identity } = await recordOf(fixture, number);
    const seen = historyBefore(identity.turnId, entries);
    const text = canonicalJson(seen as unknown as Json);
    const digest = createHash('sha256').update(text).digest('base64url');
    const bytes = Buffer.byteLength(text);
    expect(opening.seen).toEqual({ messages: 2 * (number - 1), bytes, digest });
    expect(predicate.context).toEqual([{ bytes, digest, name: 'history' }]);
  }
  expect(await fixture.host.receipts?.verify(undefined)).toMatchObject({ valid: true });
});

verifies('hosted.context', 'a turn without hosted loop can be run without history too', async () => {
  const provider = textProvider(TEXTS);
  const host = hostOf([agentDef('chat')], { providers: [provider] });
  const run = (history?: 'none' | 'session') =>
    host.run({ loop: 'chat', input: { prompt: 'What?' }, sessionId: 's', ...(history && { history }) });
  await run();
  await run('none');
  await run('session');
  const seen = provider.requests.map((request) => TEXTS.filter((text) => String(request.prompt).includes(text)));
  expect(seen).toEqual([[], [], TEXTS.slice(0, 2)]);
});

verifies('hosted.context', 'a turn without history sees none after a restart in the middle of it', async () => {
  const store = memoryStore();
  const replies = [{ text: TEXTS[0] ?? '' }, { calls: [['act', {}] as const] }, { text: 'Done.' }];
  const provider = replyProvider(replies);
  const definitions = [
    agentDef('chat', { tools: ['act'] }),
    tool('act', 'builtin:echo', { policy: { approval: 'ask' } }),
  ];
  const hostWith = (seed: number) => hostOf(definitions, { store, providers: [provider], seed });
  const host = hostWith(1);
  await host.run({ loop: 'chat', input: { prompt: 'What?' }, sessionId: 's' });
  const request = { loop: 'chat', input: { prompt: 'What?' }, sessionId: 's', history: 'none' } as const;
  const { turnId } = await host.run(request);
  await host.answer({ id: (await onlyPending(host)).id, approved: true, by: 'ada' });
  expect(await hostWith(2).resume(turnId)).toMatchObject({ status: 'ok', output: { text: 'Done.' } });
  const later = provider.requests.slice(1).map((sent) => JSON.stringify(sent.prompt));
  expect(later).toHaveLength(2);
  for (const sent of later) expect(sent).not.toContain('secret');
});

verifies(
  'hosted.context',
  'a turn of a hosted loop cannot be run, steered, retried or given more from outside',
  async () => {
    const fixture = hostedFixture({ definitions: [agentDef('chat')], providers: [textProvider(TEXTS)] });
    await fixture.start(counter({ ...ASKING, turn: { history: 'session' } }));
    await fixture.work();
    const { host } = fixture;
    const { turnId } = await onlyPending(host);
    const refused = { code: 'HOSTED_LOOP_CONFLICT' };
    for (const sessionId of ['hosted:counter', 'hosted:counter:1', 'hosted:other', 'hosted:counter:2'])
      for (const key of [undefined, 'counter#1', 'counter#2']) {
        const request = { loop: 'count', input: { from: 0 }, sessionId, ...(key && { key }) };
        await expect(host.run(request), `${sessionId} ${key}`).rejects.toMatchObject(refused);
      }
    for (const mode of ['steer', 'queue'] as const)
      await expect(host.sendMessage({ sessionId: 'hosted:counter', text: 'Psst.', mode })).rejects.toMatchObject(
        refused,
      );
    const signal = host.signal({ sessionId: 'hosted:counter', name: 'hint', payload: 'Psst.' });
    await expect(signal, 'a signal to any turn of the session').rejects.toMatchObject(refused);
    const grant = { allowedTools: ['*'], limits: {} };
    await expect(host.resume(turnId, { grant })).rejects.toMatchObject(refused);
    await expect(host.retry(turnId)).rejects.toMatchObject({ code: 'RETRY_REFUSED' });
    await expect(host.run({ loop: 'count', input: {}, sessionId: 'rondo:hosted:counter' })).rejects.toMatchObject(
      refused,
    );
    expect(fixture.inputs).toEqual([]);
    expect(await host.hosted.status('counter')).toMatchObject({ status: 'waiting', reason: 'approval', turns: 1 });
  },
);

verifies('hosted.context', 'a run with the key of a turn in another session is another turn', async () => {
  const fixture = hostedFixture();
  await fixture.start(counter({ stop: { maxTurns: 1 } }));
  const result = await fixture.host.run({ loop: 'count', input: { from: 0 }, key: 'counter#1' });
  expect(result.sessionId.startsWith('hosted:')).toBe(false);
  await fixture.work();
  expect(fixture.inputs).toHaveLength(2);
  expect(await fixture.host.hosted.status('counter')).toMatchObject({ reason: 'max_turns', turns: 1 });
});

verifies('hosted.context', 'receipt:previous is loaded into the prompts of a turn, and sealed with it', async () => {
  const provider = textProvider(TEXTS);
  const ask = prompt('ask', 'What is it?', { backend: { id: 'replies' } });
  const fixture = hostedFixture({ definitions: [ask], providers: [provider] });
  await fixture.start(counter({ loop: 'ask', input: {}, turn: { contextSkills: ['receipt:previous'] } }));
  await fixture.work();
  const turns = await fixture.host.hosted.turns('counter');
  expect(turns.map(({ status }) => status)).toEqual(['ok', 'ok', 'ok']);
  const requests = provider.requests.map((request) => String(request.prompt));
  expect(requests[0]).not.toContain('receipt');
  for (const number of [2, 3]) {
    expect(requests[number - 1]).toContain(turns[number - 2]?.turnId);
    const { predicate } = await recordOf(fixture, number);
    expect(predicate.context).toMatchObject([{ name: expect.stringContaining(turns[number - 2]?.turnId ?? '') }]);
    expect(predicate.hosted).toMatchObject({ turn: number, previous: turns[number - 2]?.receipt });
  }
  expect(fixture.clock.now()).toBe(START);
});

verifies('hosted.context', 'a loop that reads no context cannot be given any', async () => {
  const { host } = hostedFixture();
  const start = host.hosted.start(counter({ turn: { contextSkills: ['receipt:previous'] } }), { by: 'ada' });
  await expect(start).rejects.toMatchObject({ code: 'DEFINITION_INVALID' });
});
