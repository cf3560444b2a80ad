/** The turn before: without its valid, final and newest receipt, no turn follows it. */
import { expect } from 'vitest';
import { onlyPending } from '../../../spec/support/approval-fixture.js';
import { counter, type HostedFixture, hostedFixture } from '../../../spec/support/hosted-fixture.js';
import { ASKING, expectGoesOn, expectStopped, rewrite } from '../../../spec/support/hosted-stops.js';
import { testKeys } from '../../../spec/support/receipt-keys.js';
import { verifies } from '../../../spec/verifies.js';
import type { Entry } from '../../protocol/entry.js';
import type { HostedLoopDocument } from '../../protocol/hosted-loop.js';
import type { Json } from '../../protocol/json.js';
import type { TrustedKey } from '../../protocol/receipt.js';

const HOUR_MS = 3_600_000;
const FIRST = 'hosted:counter:1';
const SEALED = 'rondo.receipt.sealed';
const document: HostedLoopDocument = counter({
  schedule: { everyMs: HOUR_MS },
  stop: { maxTurns: 10 },
  next: { n: '$.last.output.n' },
});

/** A loop whose first turn has ended and whose second is due. */
async function afterOneTurn(options: Parameters<typeof hostedFixture>[0] = {}): Promise<HostedFixture> {
  const fixture = hostedFixture(options);
  await fixture.start(document);
  await fixture.work();
  await fixture.clock.advance(HOUR_MS);
  return fixture;
}

const changeEntry = (type: string, change: (entry: Entry) => Partial<Entry>) => (entries: readonly Entry[]) =>
  entries.map((entry) => (entry.type === type ? { ...entry, ...change(entry) } : entry));

const changeReceipt = (change: (receipt: { readonly [member: string]: Json }) => object) =>
  changeEntry(SEALED, ({ value }) => ({
    value: { ...(value as object), ...change(value as { [member: string]: Json }) } as Json,
  }));

/** Replaces text in the signed statement of a receipt. */
const changeStatement = (before: string, after: string) =>
  changeReceipt(({ envelope }) => {
    const { payload } = envelope as { payload: string };
    const statement = Buffer.from(payload, 'base64').toString();
    expect(statement).toContain(before);
    const changed = Buffer.from(statement.replace(before, after)).toString('base64');
    return { envelope: { ...(envelope as object), payload: changed } };
  });

const forgeries: { readonly [what: string]: (entries: Entry[]) => readonly Entry[] } = {
  'its receipt was removed': (entries) => entries.filter(({ type }) => type !== SEALED),
  'its output was changed': changeEntry('call.completed', () => ({ value: { n: 99 } })),
  'its output was removed': (entries) => entries.filter(({ type }) => type !== 'call.completed'),
  'its opening was changed': changeEntry('rondo.turn.opened', () => ({ value: {} })),
  'the statement of its receipt was changed': changeStatement('"turn":1', '"turn":7'),
  'the hash of its receipt was changed': changeReceipt(() => ({ hash: 'other' })),
  'the signature was removed': changeReceipt(({ envelope }) => ({
    envelope: { ...(envelope as object), signatures: [] },
  })),
  'its receipt has a salt of another type': changeReceipt(() => ({ salt: 7 })),
  'the salt of its receipt was changed': changeReceipt(() => ({ salt: 'AAAA' })),
};

for (const [what, forge] of Object.entries(forgeries))
  verifies('hosted.projection', `no turn follows one if ${what}`, async () => {
    const fixture = await afterOneTurn();
    await rewrite(fixture.store, FIRST, forge);
    expect((await fixture.host.hosted.status('counter')).projection.fresh).toBe(false);
    await fixture.work();
    expect(fixture.inputs).toHaveLength(1);
    await expectStopped(fixture, 'missing_receipt');
  });

verifies('hosted.projection', 'an unchanged turn is followed by the next, which gets its output', async () => {
  const fixture = await afterOneTurn();
  expect((await fixture.host.hosted.status('counter')).projection.fresh).toBe(true);
  await rewrite(fixture.store, FIRST, (entries) => entries);
  await fixture.restart().work();
  expect(fixture.inputs).toEqual([{ from: 0 }, { n: 1 }]);
  await expectGoesOn(fixture, 2);
});

verifies('hosted.projection', 'no turn follows one whose session was removed', async () => {
  const fixture = await afterOneTurn();
  await fixture.store.journal.remove(FIRST);
  expect((await fixture.host.hosted.status('counter')).projection.fresh).toBe(false);
  await fixture.work();
  expect(fixture.inputs).toHaveLength(1);
  await expectStopped(fixture, 'missing_receipt');
});

verifies('hosted.projection', 'the session of an older turn is not needed', async () => {
  const fixture = await afterOneTurn();
  await fixture.work();
  await fixture.store.journal.remove(FIRST);
  await fixture.clock.advance(HOUR_MS);
  await fixture.work();
  expect(fixture.inputs).toHaveLength(3);
  await expectGoesOn(fixture, 3);
});

/** Runs a loop until its second turn is due, and changes the key of its receipts. */
async function withKey(change: Partial<TrustedKey>): Promise<HostedFixture> {
  const intact = testKeys();
  let isChanged = false;
  const list = async () => {
    const { keys } = await intact.list();
    return isChanged ? { keys: keys.map((key) => (key.role === 'receipt' ? { ...key, ...change } : key)) } : { keys };
  };
  const fixture = await afterOneTurn({ keys: { ...intact, list } });
  isChanged = true;
  await fixture.work();
  return fixture;
}

const unusableKeys: { readonly [what: string]: Partial<TrustedKey> } = {
  'was revoked': { revoked: true },
  'was revoked from the first receipt on': { revoked: 0 },
  'is valid for later receipts': { from: 1 },
  'is not for receipts': { role: 'checkpoint' },
};

for (const [what, change] of Object.entries(unusableKeys))
  verifies('hosted.projection', `no turn follows one whose key ${what}`, async () => {
    const fixture = await withKey(change);
    expect(fixture.inputs).toHaveLength(1);
    await expectStopped(fixture, 'missing_receipt');
  });

verifies('hosted.projection', 'a key that was revoked after the receipt of the turn still counts for it', async () => {
  const fixture = await withKey({ revoked: 1 });
  expect(fixture.inputs).toHaveLength(2);
});

verifies('hosted.projection', 'no turn follows one whose key is not known any more', async () => {
  const intact = testKeys();
  let isKnown = true;
  const list = async () => (isKnown ? intact.list() : { keys: [] });
  const fixture = await afterOneTurn({ keys: { ...intact, list } });
  isKnown = false;
  await fixture.work();
  expect(fixture.inputs).toHaveLength(1);
  await expectStopped(fixture, 'missing_receipt');
});

verifies('hosted.projection', 'no turn follows one that got a newer receipt', async () => {
  const fixture = await afterOneTurn();
  await rewrite(fixture.store, FIRST, (entries) => [
    ...entries,
    ...changeReceipt(({ sequence }) => ({ sequence: Number(sequence) + 1, hash: 'newer' }))(
      entries.filter(({ type }) => type === SEALED),
    ),
  ]);
  expect((await fixture.host.hosted.status('counter')).projection.fresh).toBe(false);
  await fixture.work();
  expect(fixture.inputs).toHaveLength(1);
  await expectStopped(fixture, 'stale_projection');
});

verifies('hosted.projection', 'a receipt of another loop with the same session and turn is not accepted', async () => {
  const other = hostedFixture();
  await other.start({ ...document, stop: { maxTurns: 9 } });
  await other.work();
  const foreign: Entry[] = [];
  for await (const batch of other.store.journal.read(FIRST, 0)) foreign.push(...batch);
  const fixture = await afterOneTurn();
  await rewrite(fixture.store, FIRST, () => foreign);
  await fixture.work();
  expect(fixture.inputs).toHaveLength(1);
  await expectStopped(fixture, 'missing_receipt');
});

/** A store in which another loop with the same id, but with other content, has had its first turn. */
async function foreignFirstTurn(more: Partial<HostedLoopDocument> = {}): Promise<HostedFixture> {
  const other = hostedFixture();
  await other.start({ ...document, ...more, stop: { maxTurns: 9 } });
  await other.work();
  const fixture = hostedFixture();
  await fixture.start({ ...document, ...more });
  const { fence } = await fixture.store.journal.claim(FIRST);
  for await (const entries of other.store.journal.read(FIRST, 0)) {
    const firstSeq = entries[0]?.seq ?? 0;
    await fixture.store.journal.append({ session: FIRST, fence, firstSeq, entries });
  }
  await fixture.work();
  return fixture;
}

verifies(
  'hosted.projection',
  'a turn that ended under the key of the next, from another request, stops the loop',
  async () => {
    const fixture = await foreignFirstTurn();
    expect(fixture.inputs).toEqual([]);
    await expectStopped(fixture, 'stale_projection');
  },
);

verifies(
  'hosted.projection',
  'a turn that waits under the key of the next, from another request, stops the loop',
  async () => {
    const fixture = await foreignFirstTurn(ASKING);
    expect(fixture.inputs).toEqual([]);
    const pending = await fixture.host.archive.approvals();
    expect(pending).toEqual([]);
    await expectStopped(fixture, 'stale_projection');
  },
);

verifies('hosted.projection', 'a turn that waits goes on only while the turn before it is valid', async () => {
  const fixture = hostedFixture();
  await fixture.start({ ...document, ...ASKING });
  const approve = async () => {
    const { id } = await onlyPending(fixture.host);
    await fixture.host.answer({ id, approved: true, by: 'ada' });
    await fixture.work();
  };
  await fixture.work();
  await approve();
  await fixture.clock.advance(HOUR_MS);
  await fixture.work();
  await rewrite(fixture.store, FIRST, forgeries['its output was changed'] as never);
  await approve();
  expect(fixture.inputs).toHaveLength(1);
  await expectStopped(fixture, 'missing_receipt');
});
