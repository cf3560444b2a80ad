import { expect } from 'vitest';
import { memoryStore } from '../../src/adapters/memory/index.js';
import { seededIds } from '../../src/adapters/system/seeded-ids.js';
import { Session } from '../../src/kernel/session.js';
import type { Json } from '../../src/protocol/json.js';
import { ManualClock } from '../../src/testing/manual-clock.js';
import { ASK, answerOutcome, ofType, onlyPending, RecordedActions } from '../support/approval-fixture.js';
import { hostOf, tool } from '../support/host-fixture.js';
import { verifies } from '../verifies.js';

const PAY = tool('pay', 'builtin:act', ASK);
const ARGUMENTS = {
  amount: 5,
  to: 'ada',
  urgent: true,
  tags: ['a', 'b'],
  account: { iban: 'DE1', owner: 'ada', limits: { day: 3 } },
  memo: null,
};

/** Returns the outcome of a grant with this predicate for a call with these arguments. */
async function grantOutcome(standing: Json, input: Json = ARGUMENTS): Promise<string> {
  const host = hostOf([PAY], { tools: { act: new RecordedActions().act } });
  await host.run({ loop: 'pay', input });
  return answerOutcome(host, { id: (await onlyPending(host)).id, approved: true, by: 'ada', standing });
}

const to = (schema: Json): Json => ({ properties: { to: schema }, required: ['to'] });
const amount = (schema: Json): Json => ({ properties: { amount: schema }, required: ['amount'] });

/** Predicates that accept the call and do not limit the value of any argument. */
const UNLIMITED: readonly Json[] = [
  { minProperties: 1 },
  { maxProperties: 100 },
  { not: { const: {} } },
  { not: { required: ['everything'] } },
  { required: ['to'] },
  { required: ['to', 'amount'], type: 'object', additionalProperties: true },
  { propertyNames: { pattern: '^[a-z]+$' } },
  { propertyNames: { enum: Object.keys(ARGUMENTS) } },
  { additionalProperties: true, minProperties: 2, required: ['amount'] },
  { dependentRequired: { to: ['amount'] } },
  { if: { required: ['none'] }, else: { properties: { to: { const: 'ada' } } } },
  { patternProperties: { '^none$': { const: 1 } } },
  { properties: { other: { const: 1 } } },
  { properties: { other: { const: 1 } }, minProperties: 1 },
  to({}),
  to(true),
  to({ type: 'string' }),
  to({ type: ['string', 'null'] }),
  to({ not: { const: 'x' } }),
  to({ not: { enum: ['x', 'ada and more'] } }),
  to({ minLength: 1 }),
  to({ maxLength: 1000 }),
  to({ pattern: '.*', minLength: 3 }),
  to({ pattern: '.*', maxLength: 3 }),
  to({ pattern: '.*', not: { const: 'QJX 0451' } }),
  amount({ minimum: -1e308, multipleOf: 5 }),
  amount({ maximum: 1e308, not: { const: Number.MAX_SAFE_INTEGER } }),
  { properties: { tags: { prefixItems: [true, true], items: { const: 'a' }, minItems: 2 } }, required: ['tags'] },
  to({ pattern: '' }),
  to({ pattern: '.' }),
  to({ pattern: '.*' }),
  to({ pattern: '^.+$' }),
  to({ pattern: '^[^#]' }),
  to({ format: 'email' }),
  to({ maximum: 5 }),
  to({ items: { const: 1 } }),
  to({ anyOf: [{ const: 'ada' }, {}] }),
  to({ anyOf: [{ const: 'ada' }, { type: 'string' }] }),
  to({ oneOf: [{ const: 'ada' }, { not: { const: 'ada' } }] }),
  to({ allOf: [{}, { type: 'string' }] }),
  amount({ type: 'number' }),
  amount({ type: 'integer' }),
  amount({ multipleOf: 1 }),
  amount({ maximum: 1e300 }),
  amount({ minimum: -1e300, maximum: 1e300 }),
  amount({ pattern: '^5$' }),
  amount({ anyOf: [{ maximum: 5 }, { minimum: 5 }] }),
  { anyOf: [amount({ maximum: 5 }), amount({ minimum: 5 })] },
  { anyOf: [amount({ maximum: 5 }), {}] },
  { anyOf: [amount({ maximum: 5 }), to({ const: 'ada' })] },
  { allOf: [{ required: ['to'] }, { minProperties: 1 }] },
  { properties: { urgent: { enum: [true, false] } } },
  { properties: { urgent: { anyOf: [{ const: true }, { const: false }] } } },
  { anyOf: [{ properties: { urgent: { const: true } } }, { properties: { urgent: { const: false } } }] },
  { properties: { tags: { minItems: 1, maxItems: 100 } } },
  { properties: { tags: { contains: { const: 'a' } } } },
  { properties: { tags: { items: { type: 'string' } } } },
  { properties: { account: { required: ['iban'] } } },
  { properties: { account: { properties: { iban: { type: 'string' } } } } },
  { $defs: { any: {} }, $ref: '#/$defs/any' },
];

const LIMITING: readonly Json[] = [
  { const: ARGUMENTS },
  { enum: [ARGUMENTS, { amount: 6 }] },
  { properties: { amount: { maximum: 10 } } },
  amount({ minimum: 0, maximum: 10 }),
  amount({ exclusiveMaximum: 6 }),
  amount({ enum: [5, 6] }),
  to({ const: 'ada' }),
  to({ enum: ['ada', 'bob'] }),
  to({ pattern: '^(ada|bob)$' }),
  to({ anyOf: [{ const: 'ada' }, { enum: ['bob'] }] }),
  to({ allOf: [{ type: 'string' }, { const: 'ada' }] }),
  { anyOf: [to({ const: 'ada' }), to({ const: 'bob' })] },
  { anyOf: [{ const: ARGUMENTS }, to({ enum: ['bob'] })] },
  { minProperties: 1, not: { const: {} }, ...(to({ const: 'ada' }) as object) },
  { properties: { urgent: { const: true } } },
  { properties: { memo: { const: null } } },
  { properties: { tags: { const: ['a', 'b'] } } },
  { properties: { tags: { items: { enum: ['a', 'b', 'c'] } } } },
  { properties: { account: { properties: { iban: { const: 'DE1' } } } } },
  { properties: { account: { properties: { limits: { properties: { day: { maximum: 5 } } } } } } },
];

verifies('approval.limits', 'a predicate that limits no argument is refused, with an example', async () => {
  const accepted: string[] = [];
  for (const standing of UNLIMITED) {
    const outcome = await grantOutcome(standing);
    if (outcome === 'accepted') accepted.push(JSON.stringify(standing));
    else
      expect(outcome, JSON.stringify(standing)).toContain(
        'for example {"properties":{"amount":{"maximum":5}},"required":["amount"]}',
      );
  }
  expect(accepted).toEqual([]);
});

verifies('approval.limits', 'a predicate that limits an argument is accepted', async () => {
  for (const standing of LIMITING) expect(await grantOutcome(standing), JSON.stringify(standing)).toBe('accepted');
  expect(await grantOutcome({ const: 'ada' }, 'ada')).toBe('accepted');
  expect(await grantOutcome({ maximum: 5 }, 5)).toBe('accepted');
  expect(await grantOutcome({ const: {} }, {})).toBe('accepted');
});

/** True if a further call requires an approval after a grant. */
async function requiresApprovalAfter(standing: Json, next: Json): Promise<boolean> {
  const actions = new RecordedActions();
  const host = hostOf([PAY], { tools: { act: actions.act } });
  const { turnId } = await host.run({ loop: 'pay', input: ARGUMENTS, sessionId: 's' });
  await host.answer({ id: (await onlyPending(host)).id, approved: true, by: 'ada', standing });
  await host.resume(turnId);
  const { status } = await host.run({ loop: 'pay', input: next, sessionId: 's' });
  expect(actions.count).toBe(status === 'ok' ? 2 : 1);
  return status === 'paused';
}

verifies(
  'approval.limits',
  'a grant covers no call without an argument that it limits, or of another type',
  async () => {
    const small = { properties: { amount: { maximum: 10 } } };
    expect(await requiresApprovalAfter(small, { amount: 7 })).toBe(false);
    for (const next of [{}, { to: 'ada' }, { amount: '99999' }, { amount: [99999] }, { amount: null }] as Json[])
      expect(await requiresApprovalAfter(small, next), JSON.stringify(next)).toBe(true);
    const both = { properties: { amount: { maximum: 10 }, to: { const: 'ada' } } };
    expect(await requiresApprovalAfter(both, { amount: 7, to: 'ada' })).toBe(false);
    expect(await requiresApprovalAfter(both, { to: 'ada' })).toBe(true);
    // A limited argument that the approved call did not have stays optional.
    const optional = { properties: { amount: { maximum: 10 }, note: { enum: ['a'] } } };
    expect(await requiresApprovalAfter(optional, { amount: 7 })).toBe(false);
    expect(await requiresApprovalAfter(optional, { amount: 7, note: 'b' })).toBe(true);
    const nested = { properties: { account: { properties: { iban: { const: 'DE1' } } } } };
    expect(await requiresApprovalAfter(nested, { account: { iban: 'DE1' } })).toBe(false);
    for (const next of [{ account: {} }, { account: 'DE2' }, {}] as Json[])
      expect(await requiresApprovalAfter(nested, next), JSON.stringify(next)).toBe(true);
    const tags = { properties: { tags: { items: { enum: ['a', 'b', 'c'] } } } };
    expect(await requiresApprovalAfter(tags, { tags: ['c'] })).toBe(false);
    for (const next of [{ tags: ['d'] }, { tags: [] }, { tags: 'd' }] as Json[])
      expect(await requiresApprovalAfter(tags, next), JSON.stringify(next)).toBe(true);
  },
);

verifies('approval.limits', 'a grant of an earlier version that limits nothing covers no call', async () => {
  for (const [schema, covered] of [
    [{ minProperties: 1 }, false],
    [{ required: ['amount'] }, false],
    [{ properties: { amount: { maximum: 10 } } }, true],
  ] as const) {
    const store = memoryStore();
    const clock = new ManualClock(1_000_000);
    const host = hostOf([PAY], { store, tools: { act: new RecordedActions().act }, clock });
    const { turnId } = await host.run({ loop: 'pay', input: { amount: 5 }, sessionId: 's' });
    const { id, definitionDigest } = await onlyPending(host);
    await host.answer({ id, approved: true, by: 'ada' });
    await host.resume(turnId);
    const session = await Session.open('s', { store, clock, ids: seededIds(9) });
    const grant = { tool: 'pay', definition: definitionDigest, schema, by: 'ada', approval: id, at: 1_000_000 };
    await session.recordFact('rondo.grant.given', id, grant as never);
    await session.close();
    expect(ofType(await host.archive.entries('s'), 'rondo.grant.given')).toHaveLength(1);
    const { status } = await host.run({ loop: 'pay', input: { amount: 6 }, sessionId: 's' });
    expect(status, JSON.stringify(schema)).toBe(covered ? 'ok' : 'paused');
  }
});
