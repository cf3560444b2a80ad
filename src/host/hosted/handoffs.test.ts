/** Handoffs: a hosted loop gives its target an input on the strength of a receipt, and never more than it may itself. */
import { expect } from 'vitest';
import { counter, type HostedFixture, hostedFixture, START } from '../../../spec/support/hosted-fixture.js';
import { appendTo, expectStopped, rewrite } from '../../../spec/support/hosted-stops.js';
import { verifies } from '../../../spec/verifies.js';
import type { ToolFunction } from '../../loops/tool-implementation.js';
import type { HandoffRule, HostedLoopDocument } from '../../protocol/hosted-loop.js';
import { HOSTED_ENDED, HOSTED_HANDED_OFF, HOSTED_STOPPED, type OutgoingHandoff } from '../../views/hosted-loop.js';
import { receiptsIn } from '../../views/receipt/sealed-receipts.js';

const HOUR_MS = 3_600_000;
const BY = { by: 'ada' };
const RULE: HandoffRule = { target: 'target', input: { from: '$.last.output.n' }, reason: 'Please continue.' };

const sender = (rule: Partial<HandoffRule> = {}, more: Partial<HostedLoopDocument> = {}): HostedLoopDocument =>
  counter({ schedule: { everyMs: HOUR_MS }, stop: { maxTurns: 5 }, handoffs: [{ ...RULE, ...rule }], ...more });

const target = (more: Partial<HostedLoopDocument> = {}): HostedLoopDocument =>
  counter({ id: 'target', stop: { maxTurns: 9 }, acceptsHandoffsFrom: ['counter'], ...more });

/** Starts a target and its sender, and does what is due. */
async function handed(
  rule: Partial<HandoffRule> = {},
  targetMore: Partial<HostedLoopDocument> = {},
  senderMore: Partial<HostedLoopDocument> = {},
  tools: { readonly [name: string]: ToolFunction } = {},
): Promise<HostedFixture> {
  const fixture = hostedFixture({ tools });
  await fixture.start(target(targetMore));
  await fixture.start(sender(rule, senderMore));
  await fixture.work();
  return fixture;
}

const targetTurns = ({ host }: HostedFixture) => host.hosted.turns('target');
const receiptOf = async ({ host }: HostedFixture, turn = 1) =>
  (await host.hosted.turns('counter'))[turn - 1]?.receipt ?? '';

/** What became of the handoffs of the sender. */
async function outcomes({ store }: HostedFixture): Promise<readonly string[]> {
  const results: string[] = [];
  for await (const batch of store.journal.read('rondo:hosted:counter', 0))
    for (const { type, value } of batch)
      if (type === HOSTED_HANDED_OFF) results.push((value as { result: string }).result);
  return results;
}

/** Hands off by hand what the sender has not handed off. */
const offer = async (fixture: HostedFixture, more: Partial<OutgoingHandoff> = {}) => {
  const handoff = { target: 'target', receipt: await receiptOf(fixture), input: { from: 'hand' }, reason: '' };
  return fixture.host.hosted.handoff({ ...handoff, ...more });
};

/** A target, and a sender whose first turn has ended and handed nothing off. */
async function unhanded(targetMore: Partial<HostedLoopDocument> = {}): Promise<HostedFixture> {
  const fixture = hostedFixture();
  await fixture.start(target(targetMore));
  await fixture.start(counter({ schedule: { everyMs: HOUR_MS }, stop: { maxTurns: 5 } }));
  await fixture.work();
  return fixture;
}

verifies('hosted.handoff', 'a handoff starts a turn of its target, which names the receipt as its cause', async () => {
  const fixture = await handed();
  expect(fixture.inputs).toEqual([{ from: 0 }, { from: 1 }]);
  const [turn] = await targetTurns(fixture);
  expect(turn).toMatchObject({ cause: 'handoff', signal: `handoff ${await receiptOf(fixture)} 0`, status: 'ok' });
  expect(await outcomes(fixture)).toEqual(['accepted']);
  const { entries } = await fixture.host.archive.get(turn?.turnId ?? '');
  const opened = entries.find(({ type }) => type === 'rondo.turn.opened');
  expect(opened?.value).toMatchObject({ hosted: { loop: 'target', turn: 1, cause: turn?.signal } });
  expect(await fixture.host.hosted.status('counter')).toMatchObject({ projection: { fresh: true } });
});

verifies('hosted.handoff', 'the receipt of the receiving turn names that of the sending one', async () => {
  const fixture = await handed();
  const [receipt] = receiptsIn(await fixture.host.archive.storedEntriesOf('hosted:target:1'));
  const { predicate } = JSON.parse(Buffer.from(receipt?.envelope.payload ?? '', 'base64').toString());
  expect(predicate.hosted, 'nothing proves the handoff').toMatchObject({
    loop: 'target',
    handoff: await receiptOf(fixture),
  });
  expect(await fixture.host.receipts?.verify(undefined)).toMatchObject({ valid: true });
});

verifies('hosted.handoff', 'a handoff follows only an output that its rule names', async () => {
  const fixture = await handed({ when: { path: '$.n', equals: 3 } });
  for (const turns of [0, 0, 1]) {
    expect(await targetTurns(fixture)).toHaveLength(turns);
    await fixture.clock.advance(HOUR_MS);
    await fixture.work();
  }
  expect(fixture.inputs).toContainEqual({ from: 3 });
});

verifies('hosted.handoff', 'a failed turn hands nothing off', async () => {
  const fails: ToolFunction = () => Promise.reject(new Error('down'));
  const fixture = await handed({}, {}, { retry: { maxFailures: 2, delayMs: HOUR_MS } }, { count: fails });
  expect(await targetTurns(fixture)).toEqual([]);
  expect(await outcomes(fixture)).toEqual([]);
});

verifies('hosted.handoff', 'the last turn of a loop hands off too, and then nothing of the loop runs', async () => {
  const fixture = await handed({}, {}, { stop: { maxTurns: 5, terminal: { path: '$.n', equals: 1 } } });
  expect(await targetTurns(fixture)).toHaveLength(1);
  expect(fixture.inputs).toEqual([{ from: 0 }, { from: 1 }]);
  await expectStopped(fixture, 'terminal');
});

verifies('hosted.handoff', 'a turn whose loop is stopped before its end is recorded hands nothing off', async () => {
  const fixture = hostedFixture();
  await fixture.start(target());
  await fixture.start(sender());
  await fixture.host.hosted.pause('target', BY);
  await fixture.step();
  const stop = { reason: 'stopped_by', message: '', at: START };
  await rewrite(fixture.store, 'rondo:hosted:counter', (entries) => [
    ...entries.slice(
      0,
      entries.findIndex(({ type }) => type === HOSTED_ENDED),
    ),
    { seq: 0, at: START, type: HOSTED_STOPPED, key: 'stop', value: stop },
  ]);
  const restarted = fixture.restart();
  await restarted.step();
  expect((await restarted.host.hosted.turns('counter'))[0]).toMatchObject({ status: 'ok' });
  await restarted.work();
  expect(await outcomes(restarted)).toEqual([]);
  await expectStopped(restarted, 'stopped_by');
});

verifies('hosted.handoff', 'a turn may do what target and handoff both permit', async () => {
  const fixture = await handed({ grant: { limits: { effects: 1 } } });
  expect((await targetTurns(fixture))[0]).toMatchObject({ status: 'ok' });
  const narrow = await handed({ grant: { allowedTools: [] } });
  expect((await targetTurns(narrow))[0]).toMatchObject({ status: 'error' });
  expect(narrow.inputs, 'a tool that the handoff does not permit ran').toHaveLength(1);
});

verifies('hosted.handoff', 'a handoff that asks for more than its sender may is refused', async () => {
  const wide = { grant: { allowedTools: ['*'], limits: {} } };
  for (const more of [
    {},
    { grant: { allowedTools: ['*'], limits: {} }, turn: { grant: { allowedTools: ['count'] } } },
  ]) {
    const fixture = await handed({ grant: { allowedTools: ['count', 'pay'] } }, wide, more);
    expect(await targetTurns(fixture)).toEqual([]);
    expect(await outcomes(fixture)).toEqual([expect.stringMatching(/^(HANDOFF_REFUSED|GRANT_WIDENED)/)]);
  }
});

verifies(
  'hosted.handoff',
  'a handoff that asks for more than its target may is refused, is shown, and leaves the target as it was',
  async () => {
    const rule = { grant: { allowedTools: ['count', 'pay'] } };
    const fixture = await handed(rule, {}, { grant: { allowedTools: ['*'], limits: {} } });
    expect(fixture.inputs).toHaveLength(1);
    expect(await fixture.host.hosted.status('target')).toMatchObject({ status: 'waiting', turns: 0 });
    const [turn] = await fixture.host.hosted.turns('counter');
    expect(turn?.handoffs).toEqual([{ target: 'target', result: expect.stringMatching(/^GRANT_WIDENED: /) }]);
  },
);

verifies('hosted.handoff', 'a handoff is accepted once', async () => {
  const fixture = await unhanded();
  expect(await offer(fixture)).toBe('accepted');
  expect(await offer(fixture)).toBe('duplicate');
  await fixture.work();
  expect(await offer(fixture.restart())).toBe('duplicate');
  await expect(offer(fixture, { input: { from: 'other' } })).rejects.toMatchObject({ code: 'SIGNAL_CONFLICT' });
  await fixture.work();
  expect(await targetTurns(fixture)).toHaveLength(1);
});

const REFUSED = { code: 'HANDOFF_REFUSED' };

verifies('hosted.handoff', 'a handoff is refused from a sender that the target does not name', async () => {
  for (const acceptsHandoffsFrom of [['other'], ['target']])
    await expect(offer(await unhanded({ acceptsHandoffsFrom }))).rejects.toMatchObject(REFUSED);
  const none = counter({ id: 'target', signals: { go: { schema: true } } });
  const fixture = hostedFixture();
  await fixture.start(none);
  await fixture.start(counter({ schedule: { everyMs: HOUR_MS }, stop: { maxTurns: 5 } }));
  await fixture.work();
  await expect(offer(fixture)).rejects.toMatchObject(REFUSED);
  await expect(offer(fixture, { target: 'nowhere' })).rejects.toMatchObject(REFUSED);
});

verifies('hosted.handoff', 'a handoff is refused with a receipt that is old, unknown or empty', async () => {
  const fixture = await unhanded();
  const old = await receiptOf(fixture);
  await fixture.clock.advance(HOUR_MS);
  await fixture.work();
  for (const receipt of [old, `sha256:${'0'.repeat(64)}`, ''])
    await expect(offer(fixture, { receipt }), receipt).rejects.toMatchObject(REFUSED);
  expect(await offer(fixture, { receipt: await receiptOf(fixture, 2) })).toBe('accepted');
});

verifies(
  'hosted.handoff',
  'a handoff is refused with a receipt that does not verify, or of a failed turn',
  async () => {
    const fixture = await unhanded();
    await rewrite(fixture.store, 'hosted:counter:1', (entries) =>
      entries.map((entry) => (entry.type === 'call.completed' ? { ...entry, value: { n: 5 } } : entry)),
    );
    await expect(offer(fixture)).rejects.toMatchObject(REFUSED);
    const failing = hostedFixture({ tools: { count: () => Promise.reject(new Error('down')) } });
    await failing.start(target());
    await failing.start(counter({ stop: { maxTurns: 5 }, retry: { maxFailures: 2, delayMs: HOUR_MS } }));
    await failing.work();
    await expect(offer(failing)).rejects.toMatchObject(REFUSED);
  },
);

verifies('hosted.handoff', 'a stopped target refuses a handoff, and its sender goes on', async () => {
  const fixture = hostedFixture();
  await fixture.start(target());
  await fixture.host.hosted.stop('target', BY);
  await fixture.start(sender());
  await fixture.work();
  expect(await outcomes(fixture)).toEqual([expect.stringContaining('HOSTED_LOOP_CONFLICT')]);
  await fixture.clock.advance(HOUR_MS);
  await fixture.work();
  expect(fixture.inputs).toHaveLength(2);
});

verifies('hosted.handoff', 'a sender that ends before, or directly after, a delivery delivers once', async () => {
  for (const isDelivered of [false, true]) {
    const fixture = await unhanded();
    const { store } = fixture;
    // As if the sender had handed off, but ended before it recorded that.
    const receipt = await receiptOf(fixture);
    const outgoing = { target: 'target', receipt, input: { from: 'hand' }, reason: '' };
    let ended: object = {};
    for await (const batch of store.journal.read('rondo:hosted:counter', 0))
      for (const { type, value } of batch) if (type === HOSTED_ENDED) ended = value as object;
    await rewrite(store, 'rondo:hosted:counter', (entries) =>
      entries.map((entry) =>
        entry.type === HOSTED_ENDED ? { ...entry, value: { ...ended, handoffs: [outgoing] } as never } : entry,
      ),
    );
    const restarted = fixture.restart();
    if (isDelivered) expect(await offer(restarted)).toBe('accepted');
    await appendTo(restarted, []);
    expect(await restarted.host.hosted.status('counter')).toMatchObject({ projection: { fresh: false } });
    await restarted.step('counter');
    await restarted.work();
    expect(await outcomes(restarted)).toEqual([isDelivered ? 'duplicate' : 'accepted']);
    expect(await targetTurns(restarted)).toHaveLength(1);
  }
});

verifies('hosted.handoff', 'two rules with one target hand off twice', async () => {
  const fixture = hostedFixture();
  await fixture.start(target());
  await fixture.start(sender({}, { handoffs: [RULE, { ...RULE, input: { from: '$.turn' }, reason: 'Another.' }] }));
  await fixture.work();
  expect(await outcomes(fixture)).toEqual(['accepted', 'accepted']);
  expect(fixture.inputs).toEqual([{ from: 0 }, { from: 1 }, { from: 1 }]);
});

/** A sender whose first handoff finds that the inbox of its paused target is full, an hour later. */
async function handedToFullInbox(stop: HostedLoopDocument['stop']): Promise<HostedFixture> {
  const fixture = hostedFixture();
  await fixture.start(target({ signals: { go: { schema: true } }, next: '$.input' }));
  await fixture.host.hosted.pause('target', BY);
  for (let n = 0; n < 1000; n++)
    await fixture.host.hosted.signal({ loop: 'target', name: 'go', payload: null, id: `${n}` });
  await fixture.start(sender({}, { stop }));
  await fixture.work();
  await fixture.clock.advance(HOUR_MS);
  await fixture.work();
  return fixture;
}

verifies(
  'hosted.handoff',
  'a handoff to a full inbox is delivered when there is room, before the next turn',
  async () => {
    const fixture = await handedToFullInbox({ maxTurns: 2 });
    expect(await fixture.host.hosted.status('counter')).toMatchObject({ status: 'waiting', turns: 1 });
    await fixture.host.hosted.resume('target', BY);
    await fixture.step('target');
    await fixture.step('counter');
    expect(await outcomes(fixture)).toEqual(['accepted']);
    expect(await fixture.host.hosted.status('counter')).toMatchObject({ turns: 2 });
  },
);

verifies('hosted.handoff', 'a full inbox of its target does not keep a loop from its deadline', async () => {
  const deadline = new Date(START + HOUR_MS / 2).toISOString();
  const fixture = await handedToFullInbox({ maxTurns: 9, deadline });
  expect(await fixture.host.hosted.status('counter')).toMatchObject({ status: 'stopped', reason: 'deadline' });
});
