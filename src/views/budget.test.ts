/** The view of a budget: reservations and settlements in any order, repeated, lost, and restored from a snapshot. */
import fc from 'fast-check';
import { expect } from 'vitest';
import { verifies } from '../../spec/verifies.js';
import type { Json } from '../protocol/json.js';
import {
  type Account,
  type Amounts,
  BUDGET_RESERVED,
  BUDGET_SETTLED,
  BUDGET_TURN_ENDED,
  Budget,
  type BudgetEntry,
  GRANT_REGISTERED,
  newReservedEntry,
} from './budget.js';

const RUNS = { numRuns: 500 };
const COUNTERS = ['effects', 'outputTokens', 'costMicros'] as const;
const ACCOUNTS = ['', 'derived'];

const amountsOf = (max: number): fc.Arbitrary<Amounts> =>
  fc.dictionary(fc.constantFrom(...COUNTERS), fc.nat(max), { maxKeys: 3 });
const accountsOf = (limits: Amounts): readonly Account[] => ACCOUNTS.map((id) => ({ id, limits }));
const turnOf = fc.constantFrom('s.1', 's.10');
const effectOf = fc.tuple(turnOf, fc.nat(2)).map(([turn, step]) => ({ turn, effect: `${turn}/${step}` }));

const reservedEntry = fc
  .record({
    target: effectOf,
    attempt: fc.nat(2),
    amounts: amountsOf(50),
    isOpen: fc.boolean(),
    isShared: fc.boolean(),
  })
  .map(({ target: { turn, effect }, attempt, amounts, isOpen, isShared }) => {
    const accounts = accountsOf({}).slice(0, isShared ? 2 : 1);
    return newReservedEntry(turn, effect, attempt, amounts, { accounts, isOpen });
  });
const settledEntry = fc
  .record({ target: effectOf, attempt: fc.nat(2), amounts: amountsOf(80) })
  .map(({ target: { effect }, attempt, amounts }): BudgetEntry => {
    return { type: BUDGET_SETTLED, key: `${effect}#${attempt}`, value: { amounts: amounts as Json } };
  });
const chargedEntry = fc
  .record({ amounts: amountsOf(50), accounts: fc.subarray(ACCOUNTS, { minLength: 1 }) })
  .map((value): BudgetEntry => ({ type: BUDGET_SETTLED, key: 'charge', value: value as unknown as Json }));
const endedEntry = turnOf.map((turn): BudgetEntry => ({ type: BUDGET_TURN_ENDED, key: turn }));
const unknownEntry = fc.constant<BudgetEntry>({
  type: 'rondo.budget.later',
  key: 'k',
  value: { amounts: { effects: 9 } },
});
const anyEntry = fc.oneof(
  { arbitrary: reservedEntry, weight: 4 },
  { arbitrary: settledEntry, weight: 4 },
  chargedEntry,
  endedEntry,
  unknownEntry,
);

const fold = (entries: readonly BudgetEntry[], budget = new Budget()): Budget => {
  for (const entry of entries) budget.apply(entry);
  return budget;
};
const totalsOf = (budget: Budget) => Object.fromEntries(ACCOUNTS.map((id) => [id, budget.totals(id)]));

/** What an account must have used: each charge, what was settled first, and the reservations that were not. */
function expectedUse(entries: readonly BudgetEntry[], account: string, counter: string): number {
  const open = new Map<string, { readonly accounts: readonly string[]; readonly amounts: Amounts }>();
  let sum = 0;
  for (const { type, key, value } of entries) {
    const { amounts, accounts, isOpen } = value as { amounts: Amounts; accounts?: string[]; isOpen?: boolean };
    const reservation = open.get(key);
    if (type === BUDGET_RESERVED) {
      const payers = accounts ?? [''];
      if (payers.includes(account)) sum += amounts[counter] ?? 0;
      if (isOpen === true) open.set(key, { accounts: payers, amounts });
    } else if (type === BUDGET_SETTLED && accounts !== undefined) {
      if (accounts.includes(account)) sum += amounts[counter] ?? 0;
    } else if (type === BUDGET_SETTLED && reservation !== undefined) {
      open.delete(key);
      if (reservation.accounts.includes(account) && amounts[counter] !== undefined)
        sum += amounts[counter] - (reservation.amounts[counter] ?? 0);
    }
  }
  return sum;
}

verifies(
  'grant.budget',
  'what is used is what was charged, settled first and still reserved, whatever the order and repetition',
  () => {
    fc.assert(
      fc.property(fc.array(anyEntry, { maxLength: 40 }), (entries) => {
        const budget = fold(entries);
        const known = entries.filter(({ type }) => type === BUDGET_RESERVED || type === BUDGET_SETTLED);
        for (const account of ACCOUNTS)
          for (const counter of COUNTERS) {
            const used = budget.usedOf(account, counter);
            expect(used, 'an amount was lost or counted twice').toBe(expectedUse(known, account, counter));
            expect(used, 'a settlement returned more than was reserved').toBeGreaterThanOrEqual(0);
          }
      }),
      RUNS,
    );
  },
);

verifies('grant.budget', 'a reservation that is settled again, at any later time, counts once', () => {
  fc.assert(
    fc.property(
      fc.array(anyEntry, { maxLength: 20 }),
      amountsOf(50),
      amountsOf(80),
      fc.nat(20),
      (others, held, used, at) => {
        const options = { accounts: accountsOf({}), isOpen: true };
        const reserved = newReservedEntry('t', 't/0', 0, held, options);
        const settled = { type: BUDGET_SETTLED, key: 't/0#0', value: { amounts: used as Json } };
        const once = fold([reserved, settled, ...others]);
        const again = fold([reserved, settled, ...others.slice(0, at), settled, ...others.slice(at), settled]);
        expect(totalsOf(again)).toEqual(totalsOf(once));
      },
    ),
    RUNS,
  );
});

verifies('grant.budget', 'a settlement without its reservation changes nothing', () => {
  fc.assert(
    fc.property(settledEntry, (settled) => {
      expect(totalsOf(fold([settled]))).toEqual({ '': {}, derived: {} });
    }),
    RUNS,
  );
});

/** A request for amounts, and the share of each reservation that is used when it is settled; undefined if it never is. */
const request = fc.record({
  amounts: amountsOf(20),
  share: fc.option(fc.double({ min: 0, max: 1, noNaN: true }), { nil: undefined }),
});

verifies('grant.budget', 'as long as the view admits every reservation, no account exceeds a limit at any time', () => {
  fc.assert(
    fc.property(amountsOf(60), fc.array(request, { maxLength: 40 }), (limits, requests) => {
      const budget = new Budget();
      const accounts = accountsOf(limits);
      for (const [index, { amounts, share }] of requests.entries()) {
        const exceeded = budget.exceededBy(accounts, amounts);
        if (exceeded !== undefined) {
          const { account, counter, used, limit } = exceeded;
          expect({ used, limit }).toEqual({ used: budget.usedOf(account, counter), limit: limits[counter] });
          expect(used + (amounts[counter] ?? 0), 'an amount within the limit was refused').toBeGreaterThan(limit);
          continue;
        }
        budget.apply(newReservedEntry('t', `t/${index}`, 0, amounts, { accounts, isOpen: true }));
        expect(budget.overdrawn(accounts), 'an admitted reservation exceeds a limit').toBeUndefined();
        if (share === undefined) continue;
        const used = Object.fromEntries(
          Object.entries(amounts).map(([name, held]) => [name, Math.floor(held * share)]),
        );
        budget.apply({ type: BUDGET_SETTLED, key: `t/${index}#0`, value: { amounts: used } });
        expect(budget.overdrawn(accounts)).toBeUndefined();
      }
    }),
    RUNS,
  );
});

verifies(
  'grant.budget',
  'a limit that is used up admits nothing more of its counter, and everything of the others',
  () => {
    fc.assert(
      fc.property(fc.constantFrom(...COUNTERS), fc.nat(50), fc.integer({ min: 1, max: 50 }), (counter, limit, more) => {
        const accounts = accountsOf({ [counter]: limit });
        const budget = fold([newReservedEntry('t', 't/0', 0, { [counter]: limit }, { accounts, isOpen: false })]);
        expect(budget.exceededBy(accounts, { [counter]: more })).toEqual({ account: '', counter, used: limit, limit });
        expect(budget.exceededBy(accounts, { [counter]: 0, other: more })).toBeUndefined();
      }),
      RUNS,
    );
  },
);

verifies(
  'grant.budget',
  'a use above its reservation is recorded in full, is overdrawn and admits nothing more',
  () => {
    fc.assert(
      fc.property(fc.constantFrom(...COUNTERS), fc.nat(50), fc.nat(100), (counter, limit, used) => {
        const accounts = accountsOf({ [counter]: limit });
        const reserved = newReservedEntry('t', 't/0', 0, { [counter]: limit }, { accounts, isOpen: true });
        const budget = fold([
          reserved,
          { type: BUDGET_SETTLED, key: 't/0#0', value: { amounts: { [counter]: used } } },
        ]);
        expect(budget.usedOf('', counter)).toBe(used);
        const exceeded = { account: '', counter, used, limit };
        expect(budget.overdrawn(accounts)).toEqual(used > limit ? exceeded : undefined);
        expect(budget.exceededBy(accounts, { [counter]: 1 })).toEqual(used >= limit ? exceeded : undefined);
      }),
      RUNS,
    );
  },
);

verifies('grant.shared', 'a state that is saved and restored anywhere continues as if it had not been', () => {
  const registered = { type: GRANT_REGISTERED, key: 'grant', value: { digest: 'd', grant: { limits: {} } } };
  fc.assert(
    fc.property(fc.array(anyEntry, { maxLength: 30 }), fc.nat(30), (entries, at) => {
      const all = [registered, ...entries];
      const saved = JSON.parse(JSON.stringify(fold(all.slice(0, at)).save())) as Json;
      expect(fold(all.slice(at), new Budget(saved)).save()).toEqual(fold(all).save());
    }),
    RUNS,
  );
});

verifies(
  'grant.budget',
  'an interrupted attempt stays charged: only the last one of a turn can still be settled',
  () => {
    const options = { accounts: accountsOf({}).slice(0, 1), isOpen: true };
    fc.assert(
      fc.property(fc.integer({ min: 1, max: 6 }), fc.integer({ min: 1, max: 6 }), (attempts, ofOther) => {
        const reserve = (turn: string, count: number) =>
          Array.from({ length: count }, (_, n) => newReservedEntry(turn, `${turn}/0`, n, { outputTokens: 5 }, options));
        const budget = fold([...reserve('s.1', attempts), ...reserve('s.10', ofOther)]);
        expect(budget.attemptsAt('s.1', 's.1/0')).toBe(attempts);
        const open = budget.openReservations('s.1');
        expect(open, 'a reservation of another turn or of an interrupted attempt is offered').toEqual([
          { key: `s.1/0#${attempts - 1}`, effect: 's.1/0', amounts: { outputTokens: 5 } },
        ]);
        budget.apply({ type: BUDGET_SETTLED, key: open[0]?.key ?? '', value: { amounts: { outputTokens: 0 } } });
        expect(budget.openReservations('s.1')).toEqual([]);
        expect(budget.usedOf('', 'outputTokens')).toBe(5 * (attempts - 1 + ofOther));
      }),
      RUNS,
    );
  },
);

verifies('grant.budget', 'a turn that ended gives nothing back, and its attempts are forgotten', () => {
  fc.assert(
    fc.property(fc.array(anyEntry, { maxLength: 30 }), (entries) => {
      const before = totalsOf(fold(entries));
      const ended = fold([...entries, { type: BUDGET_TURN_ENDED, key: 's.1' }]);
      expect(totalsOf(ended)).toEqual(before);
      for (const step of [0, 1, 2]) expect(ended.attemptsAt('s.1', `s.1/${step}`)).toBe(0);
      expect(ended.openReservations('s.1')).toEqual([]);
    }),
    RUNS,
  );
});
