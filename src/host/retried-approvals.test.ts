import { expect } from 'vitest';
import { hostOf, sequence, tool } from '../../spec/support/host-fixture.js';
import { testKeys } from '../../spec/support/receipt-keys.js';
import { pendingOf } from '../../spec/support/turn-results.js';
import { verifies } from '../../spec/verifies.js';
import { memoryStore } from '../adapters/memory/index.js';
import type { Store } from '../journal/store.js';
import { defineLoop } from '../loops/define.js';
import type { Scope } from '../protocol/body.js';
import type { Json } from '../protocol/json.js';
import type { ReceiptResolution } from '../protocol/receipt.js';
import { crashingStore } from '../testing/crashing-store.js';
import { payloadOf } from '../views/receipt/envelope.js';
import { receiptsIn } from '../views/receipt/sealed-receipts.js';
import { parseStatement } from '../views/receipt/statement.js';
import { verifyTurnEntries } from '../views/receipt/verify-turn-entries.js';
import type { Host } from './host.js';

/** A tool that needs approval and fails while it is down, in hosts on one store. */
function approvedPayment(more: { readonly policy?: object; readonly safety?: 'once' | 'idempotent' } = {}) {
  const store = memoryStore();
  const state = { isDown: true, isHanging: false, paid: 0 };
  const pay = (): string | Promise<string> => {
    state.paid += 1;
    if (state.isHanging) return new Promise(() => {});
    if (state.isDown) throw new Error('The bank is down.');
    return 'paid';
  };
  const { policy = {}, safety = 'once' } = more;
  const asking = { policy: { approval: 'ask', ...policy }, tool: { implementation: 'builtin:pay', safety } } as const;
  let seed = 0;
  const open = (used: Store = store): Host =>
    hostOf([tool('pay', 'builtin:pay', asking)], {
      store: used,
      tools: { pay },
      receiptKeys: testKeys(),
      seed: ++seed,
    });
  return { store, state, open };
}

const PAY = { loop: 'pay', input: { to: 'bob' }, sessionId: 's' } as const;

/** Approves what is pending, as this person, and resumes the turn. */
async function approveAs(by: string, host: Host, turnId: string, standing?: Json) {
  const [approval, ...others] = await host.archive.approvals('s');
  expect([approval === undefined, others], 'one approval is pending').toEqual([false, []]);
  await host.answer({ id: approval?.id ?? '', approved: true, by, ...(standing !== undefined && { standing }) });
  return host.resume(turnId);
}

/** The answered approvals of the receipts of the session, in order. */
async function receiptsOf(host: Host) {
  const predicates = receiptsIn(await host.archive.entries('s')).map(
    ({ envelope }) => parseStatement(payloadOf(envelope) ?? Buffer.alloc(0)).predicate,
  );
  expect(await host.receipts?.verify(undefined)).toMatchObject({ valid: true });
  return predicates;
}

verifies('approval.once', 'host.retry: one approval pays for one run, and each retry asks again', async () => {
  const { state, open } = approvedPayment();
  const { turnId } = await open().run(PAY);
  expect((await approveAs('ada', open(), turnId)).status).toBe('error');
  for (const [round, by] of ['bob', 'carol'].entries()) {
    const retried = await open().retry(turnId);
    expect(retried.status, 'an approval paid for another run').toBe('paused');
    expect((await open().resume(turnId)).status).toBe('paused');
    expect(state.paid).toBe(round + 1);
    state.isDown = by === 'bob';
    expect((await approveAs(by, open(), turnId)).status).toBe(by === 'bob' ? 'error' : 'ok');
    expect(state.paid).toBe(round + 2);
  }
  const host = open();
  expect(await host.replay(turnId)).toMatchObject({ matches: true });
  expect((await host.archive.approvalRecords(turnId)).map(({ by }) => by)).toEqual(['ada', 'bob', 'carol']);
  const predicates = await receiptsOf(host);
  expect(predicates.flatMap(({ approvals }) => approvals.map(({ by }) => by))).toEqual(['ada', 'bob', 'carol']);
  expect(predicates.at(-1)?.effects, 'each run is one attempt').toMatchObject([
    { name: 'pay', attempts: 3, state: 'done' },
  ]);
});

verifies('approval.once', 'host.retry: a retry that is denied runs nothing', async () => {
  const { state, open } = approvedPayment();
  const { turnId } = await open().run(PAY);
  await approveAs('ada', open(), turnId);
  const host = open();
  await host.retry(turnId);
  const [approval] = await host.archive.approvals('s');
  await host.answer({ id: approval?.id ?? '', approved: false, by: 'bob' });
  expect(await host.resume(turnId)).toMatchObject({ status: 'error', error: { code: 'APPROVAL_DENIED' } });
  expect((await host.retry(turnId)).status).toBe('error');
  expect(state.paid, 'a denied retry ran').toBe(1);
  await receiptsOf(host);
});

verifies('approval.once', 'the attempts of a retry policy share the approval of their call', async () => {
  const policy = { retry: { attempts: 3, backoffMs: 0, jitter: 0 } };
  const { state, open } = approvedPayment({ policy, safety: 'idempotent' });
  const { turnId } = await open().run(PAY);
  expect((await approveAs('ada', open(), turnId)).status).toBe('error');
  expect(state.paid).toBe(3);
  expect((await open().retry(turnId)).status).toBe('paused');
  expect(state.paid).toBe(3);
  state.isDown = false;
  expect((await approveAs('bob', open(), turnId)).status).toBe('ok');
  expect(state.paid).toBe(4);
});

verifies('approval.standing', 'host.retry: a standing grant is checked again', async () => {
  const { state, open } = approvedPayment();
  const standing = { properties: { to: { const: 'bob' } }, required: ['to'] };
  const first = await open().run(PAY);
  expect((await approveAs('ada', open(), first.turnId, standing)).status).toBe('error');
  const host = open();
  const { turnId } = await host.run({ ...PAY, approvers: ['ada'] });
  expect(state.paid).toBe(2);
  expect((await host.retry(turnId)).status, 'the grant still covers the call').toBe('error');
  expect(state.paid).toBe(3);
  state.isDown = false;
  expect((await host.retry(first.turnId)).status, 'the grant covers the call that gave it').toBe('ok');
  expect(state.paid).toBe(4);
  await receiptsOf(host);
});

verifies(
  'approval.once',
  'the resolution of an effect in doubt is a decision of its own, and its receipt names who decided',
  async () => {
    const { state, open } = approvedPayment();
    const { turnId } = await open().run(PAY);
    state.isHanging = true;
    const [approval] = await open().archive.approvals('s');
    const killed = open();
    await killed.answer({ id: approval?.id ?? '', approved: true, by: 'ada' });
    void killed.resume(turnId);
    await new Promise((resolve) => setTimeout(resolve, 20));
    Object.assign(state, { isHanging: false });
    const host = open();
    const paused = await host.resume(turnId);
    expect(paused).toMatchObject({ status: 'paused', pending: [{ kind: 'doubt' }] });
    expect(state.paid).toBe(1);
    await host.resolveEffect(pendingOf(paused)?.[0]?.key ?? '', 'retry', 'bob');
    expect((await host.resume(turnId)).status, 'it failed again').toBe('error');
    expect(state.paid, 'the resolution needs no approval besides').toBe(2);
    const [effect] = (await receiptsOf(host)).at(-1)?.effects ?? [];
    expect(effect?.resolutions).toEqual([{ by: 'bob', resolution: 'retry' }]);
    expect((await host.retry(turnId)).status, 'neither the approval nor the resolution pays for a retry').toBe(
      'paused',
    );
    expect(state.paid).toBe(2);
    state.isDown = false;
    expect((await approveAs('carol', open(), turnId)).status).toBe('ok');
    const [last] = (await receiptsOf(host)).at(-1)?.effects ?? [];
    expect(last).toMatchObject({ state: 'done', attempts: 3, resolutions: [{ by: 'bob', resolution: 'retry' }] });
  },
);

/** A loop in code whose one effect fails while it is down. */
function codeJob(state: { readonly isDown: boolean; paid: number }) {
  const charge = (): string => {
    state.paid += 1;
    if (state.isDown) throw new Error('down');
    return 'paid';
  };
  const run = async (_input: unknown, scope: Scope): Promise<never> => (await scope.effect('charge', charge)) as never;
  return defineLoop({ id: 'job', input: true as never, output: true as never, run });
}

verifies('receipt.journal', 'a receipt of an earlier version, which names no resolutions, is valid', async () => {
  const { state, open } = approvedPayment({ policy: { approval: 'always_allow' } });
  state.isHanging = true;
  void open().run(PAY);
  await new Promise((resolve) => setTimeout(resolve, 20));
  const host = open();
  const [turn] = await host.archive.turns();
  const paused = await host.resume(turn?.turnId ?? '');
  await host.resolveEffect(pendingOf(paused)?.[0]?.key ?? '', 'supply', 'bob', 'paid');
  await host.resume(paused.turnId);
  const [predicate] = (await receiptsOf(host)).slice(-1);
  const entries = await host.archive.entries('s');
  const salt = Buffer.from(receiptsIn(entries).at(-1)?.salt ?? '', 'base64');
  if (predicate === undefined) throw new Error('The turn has no receipt.');
  const withResolutions = (resolutions?: readonly ReceiptResolution[]) => {
    const effects = predicate.effects.map(({ resolutions: _, ...effect }) => ({
      ...effect,
      ...(resolutions !== undefined && { resolutions }),
    }));
    return verifyTurnEntries({ ...predicate, effects }, entries, salt);
  };
  expect(withResolutions([{ by: 'bob', resolution: 'supply' }])).toEqual([]);
  expect(withResolutions()).toEqual([]);
  expect(withResolutions([{ by: 'eve', resolution: 'supply' }])).toEqual(['effects_mismatch']);
});

verifies('approval.kill', 'host.retry: a crash at any append performs the approved retry at most once', async () => {
  for (let appendNumber = 1, hasCrashed = true; hasCrashed; appendNumber++) {
    const { store, state, open } = approvedPayment();
    const { turnId } = await open().run(PAY);
    await approveAs('ada', open(), turnId);
    state.isDown = false;
    const crashing = crashingStore(store, { appendNumber, when: 'after' });
    const killed = open(crashing);
    await killed.retry(turnId).catch(() => undefined);
    await approveAs('bob', killed, turnId).catch(() => undefined);
    hasCrashed = crashing.hasCrashed;
    const label = `a crash at append ${appendNumber}`;
    const host = open();
    const [status] = await host.archive.status(turnId);
    let result = status?.status === 'error' ? await host.retry(turnId) : await host.resume(turnId);
    const [doubt] = pendingOf(result).filter(({ kind }) => kind === 'doubt');
    if (doubt !== undefined) await host.resolveEffect(doubt.key, 'supply', 'bob', { output: 'paid' });
    if (result.status === 'paused')
      result = doubt === undefined ? await approveAs('carol', host, turnId) : await host.resume(turnId);
    expect(result.status, label).toBe('ok');
    // An attempt in doubt may not have begun.
    expect(doubt === undefined ? [2] : [1, 2], `${label}: an approval paid twice`).toContain(state.paid);
    await receiptsOf(host);
  }
});

for (const [kind, loop] of [
  ['a body in code', codeJob],
  ['a composite', () => sequence('job', 'pay')],
] as const)
  verifies('approval.once', `host.retry: ${kind} that was approved as a whole is asked for again`, async () => {
    const store = memoryStore();
    const state = { isDown: true, paid: 0 };
    const pay = (): string => {
      state.paid += 1;
      if (state.isDown) throw new Error('down');
      return 'paid';
    };
    let seed = 0;
    const open = (): Host => {
      const loops = [tool('pay', 'builtin:pay'), loop(state), sequence('outer', 'job')];
      return hostOf(loops, { store, tools: { pay }, receiptKeys: testKeys(), seed: ++seed });
    };
    const grant = { allowedTools: ['*'], limits: {}, review: { job: 'ask' } } as const;
    const { turnId } = await open().run({ loop: 'outer', input: {}, sessionId: 's', grant });
    expect((await approveAs('ada', open(), turnId)).status).toBe('error');
    expect(state.paid).toBe(1);
    state.isDown = false;
    expect((await open().retry(turnId)).status, 'an approval paid for another run').toBe('paused');
    expect(state.paid).toBe(1);
    const host = open();
    expect(await approveAs('bob', host, turnId)).toMatchObject({ status: 'ok', output: 'paid' });
    expect(state.paid).toBe(2);
    expect(await host.replay(turnId)).toMatchObject({ matches: true });
    await receiptsOf(host);
  });
