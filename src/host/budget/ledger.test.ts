/** What one decision of a ledger pays is paid completely or not at all, also when another process decides meanwhile. */
import { expect } from 'vitest';
import { busyWitness, memoryWitness } from '../../../spec/support/length-witness.js';
import { verifies } from '../../../spec/verifies.js';
import { memoryStore } from '../../adapters/memory/index.js';
import { ManualClock } from '../../testing/manual-clock.js';
import { Ledger, ledgerName } from './ledger.js';

const limits = { effects: 2, toolRounds: 1 };
const document = { allowedTools: ['*'], limits };
const accounts = [{ id: '', limits }];
const oneEffect = { perEffect: { effects: 1 }, perAttempt: {} };

verifies('grant.shared', 'an effect whose tool round another process used up is not paid either', async () => {
  const store = memoryStore();
  const openLedger = () => Ledger.open({ store, clock: new ManualClock(1) }, 'shared', document);
  const ledgers = [await openLedger(), await openLedger()];
  const reservations = ledgers.map((ledger, index) => {
    const [turn, effect, round] = [`t${index}`, `t${index}/0/0`, `t${index}/0@round`];
    return ledger.reserve({ turn, effect, round, accounts, isOpen: false }, oneEffect);
  });
  const durable = await Promise.all(reservations.map((made) => 'durable' in made && made.durable));
  expect(durable.filter((isReserved) => isReserved)).toHaveLength(1);
  const { budget } = await openLedger();
  expect(budget.totals(), 'an effect that cannot run was paid').toEqual({ effects: 1, toolRounds: 1 });
});

verifies('grant.budget', 'a tool round without an effect that is left for it is not paid', async () => {
  const ledger = await Ledger.open({ store: memoryStore(), clock: new ManualClock(1) }, 'g', document);
  const reserve = (effect: string, round?: string) =>
    ledger.reserve({ turn: 't', effect, round, accounts, isOpen: false }, oneEffect);
  reserve('t/0');
  reserve('t/1');
  expect(reserve('t/2/0', 't/2@round')).toMatchObject({ counter: 'effects', used: 2, limit: 2 });
  expect(ledger.budget.totals()).toEqual({ effects: 2 });
});

verifies('grant.budget', 'the effects of one tool round pay for it once', async () => {
  const ledger = await Ledger.open({ store: memoryStore(), clock: new ManualClock(1) }, 'g', document);
  for (const effect of ['t/0/0', 't/0/1', 't/0/1'])
    ledger.reserve({ turn: 't', effect, round: 't/0@round', accounts, isOpen: false }, oneEffect);
  expect(ledger.budget.totals()).toEqual({ effects: 2, toolRounds: 1 });
});

verifies(
  'grant.ledger-kept',
  'a ledger that was removed is not begun again, not even before a turn has ended',
  async () => {
    for (const hasEnded of [false, true]) {
      const store = memoryStore();
      const deps = { store, clock: new ManualClock(1), witness: memoryWitness() };
      const ledger = await Ledger.open(deps, 'g', document);
      ledger.reserve({ turn: 't', effect: 't/0', accounts, isOpen: false }, oneEffect);
      if (hasEnded) await ledger.endTurn('t');
      await ledger.flush();
      expect((await Ledger.open(deps, 'g', document)).budget.totals()).toEqual({ effects: 1 });
      await store.journal.remove(ledgerName('g'));
      await expect(Ledger.open(deps, 'g', document)).rejects.toMatchObject({ code: 'STORE_DAMAGED' });
    }
  },
);

verifies('grant.ledger-kept', 'a turn does not continue under a grant whose ledger is gone', async () => {
  const store = memoryStore();
  const deps = { store, clock: new ManualClock(1) };
  await Ledger.open(deps, 'g', document, false);
  await expect(Ledger.open(deps, 'g', document, true)).resolves.toBeInstanceOf(Ledger);
  await store.journal.remove(ledgerName('g'));
  await expect(Ledger.open(deps, 'g', document, true)).rejects.toMatchObject({ code: 'STORE_DAMAGED' });
});

verifies('grant.ledger-kept', 'a ledger that another process adds to while it is opened is intact', async () => {
  const kept = memoryWitness();
  const deps = { store: memoryStore(), clock: new ManualClock(1) };
  const running = await Ledger.open({ ...deps, witness: kept }, 'g', document);
  const witness = busyWitness(kept, async () => {
    running.reserve({ turn: 't', effect: 't/0', accounts, isOpen: false }, oneEffect);
    await running.endTurn('t');
  });
  const opened = await Ledger.open({ ...deps, witness }, 'g', document);
  expect(opened.budget.totals(), 'a healthy ledger was reported as damaged').toEqual({ effects: 1 });
});

verifies(
  'grant.ledger-kept',
  'an open ledger that another process added to is intact for a turn from there',
  async () => {
    const deps = { store: memoryStore(), clock: new ManualClock(1) };
    const [first, second] = [await Ledger.open(deps, 'g', document), await Ledger.open(deps, 'g', document)];
    first.reserve({ turn: 't', effect: 't/0', accounts, isOpen: false }, oneEffect);
    // The turn pauses, and continues in the second process, which decides on the ledger meanwhile.
    const length = await first.durableLength();
    second.reserve({ turn: 'u', effect: 'u/0', accounts, isOpen: false }, oneEffect);
    await second.assertLength(length);
    await expect(second.assertLength(length + 5)).rejects.toMatchObject({ code: 'STORE_DAMAGED' });
  },
);
