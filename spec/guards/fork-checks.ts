// Checks of forks: each holds on the intact library and fails when its guard is broken.

import { notStrictEqual, rejects, strictEqual } from 'node:assert';
import type { ForkedTurn } from '../../src/host/fork-turn.js';
import type { Scope } from '../../src/protocol/body.js';
import type { Entry } from '../../src/protocol/entry.js';
import type { Grant } from '../../src/protocol/grant.js';
import { type HostLibrary, hostParts, type LibraryParts } from './library.js';

export const forkParts: LibraryParts = hostParts;

type ForkCheck = (library: HostLibrary) => Promise<void>;
type TestHost = InstanceType<HostLibrary['Host']>;

/** A host with a loop that performs an effect and waits, and a record of the idempotency keys of its effects. */
function forkHost({ Host, Registry, memoryStore, ManualClock, seededIds, defineLoop }: HostLibrary) {
  const keys: string[] = [];
  const registry = new Registry();
  registry.add(
    defineLoop({
      id: 'work',
      input: true,
      output: true,
      run: async (_, scope) => {
        await scope.wait('go');
        return scope.effect('act', ({ idempotencyKey }) => keys.push(idempotencyKey), { safety: 'keyed' });
      },
    }),
  );
  const clock = new ManualClock(1_000_000);
  const host = new Host({ store: memoryStore(), clock, ids: seededIds(1), registry });
  return { host, keys };
}

async function runWork(host: TestHost): Promise<string> {
  const { turnId } = await host.run({ loop: 'work', input: {}, sessionId: 'ada' });
  await host.signal({ turnId, name: 'go' });
  return turnId;
}

const seqOf = async (host: TestHost, matches: (entry: Entry) => boolean): Promise<number> =>
  (await host.archive.entries('ada')).find(matches)?.seq ?? -1;

/** Forks a turn at the receipt of its signal. */
async function forkAtSignal(host: TestHost, turnId: string): Promise<ForkedTurn> {
  return host.fork(turnId, {
    at: await seqOf(host, ({ type, ...entry }) => type === 'signal.received' && entry.turnId === turnId),
  });
}

/** Forks a turn at its start. */
async function forkAtStart(host: TestHost, turnId: string): Promise<ForkedTurn> {
  return host.fork(turnId, { at: await seqOf(host, ({ type, key }) => type === 'call.started' && key === turnId) });
}

/** A host with a tool `pay` that needs an approval and fails at first, and the session in which it was approved. */
async function approvedPayment({ Host, Registry, memoryStore, ManualClock, seededIds, defineLoop }: HostLibrary) {
  let attempts = 0;
  const pay = (): string => {
    attempts += 1;
    if (attempts === 1) throw new Error('down');
    return 'paid';
  };
  const registry = new Registry();
  const policy = { approval: 'ask' } as const;
  registry.add(defineLoop({ id: 'pay', input: true, output: true, safety: 'idempotent', policy, tool: pay }));
  const clock = new ManualClock(1_000_000);
  const host = new Host({ store: memoryStore(), clock, ids: seededIds(1), registry });
  const { turnId } = await host.run({ loop: 'pay', input: {}, sessionId: 'ada' });
  const [approval] = await host.archive.approvals('ada');
  await host.answer({ id: approval?.id ?? '', approved: true, by: 'ada' });
  await host.resume(turnId);
  return { host, turnId, attempts: () => attempts };
}

/** The turn of a body in code that was approved as a whole, then made a pure step, and then an effect; and its effects. */
async function approvedBody({ Host, Registry, memoryStore, ManualClock, seededIds, defineLoop }: HostLibrary) {
  let performed = 0;
  const registry = new Registry();
  const run = async (_: unknown, scope: Scope): Promise<unknown> => {
    await scope.effect('look', () => null, { safety: 'pure' });
    return scope.effect('pay', () => (performed += 1));
  };
  registry.add(defineLoop({ id: 'refund', input: true, output: true, run }));
  const clock = new ManualClock(1_000_000);
  const host = new Host({ store: memoryStore(), clock, ids: seededIds(1), registry });
  const grant: Grant = { allowedTools: ['*'], review: { refund: 'ask' }, limits: {} };
  const { turnId } = await host.run({ loop: 'refund', input: {}, sessionId: 'ada', grant });
  const [approval] = await host.archive.approvals('ada');
  await host.answer({ id: approval?.id ?? '', approved: true, by: 'ada' });
  await host.resume(turnId);
  return { host, turnId, performed: () => performed };
}

export const forkChecks = {
  'an answer for a body as a whole is used until the body has ended': async (library) => {
    const { host, turnId, performed } = await approvedBody(library);
    strictEqual(performed(), 1);
    const { length } = await host.archive.entries('ada');
    for (let at = await seqOf(host, ({ type }) => type === 'signal.received'); at < length; at++)
      await rejects(host.fork(turnId, { at }), { code: 'FORK_REFUSED' });
  },

  'an entry between an answer and the end of its effect is refused': async (library) => {
    const { host, turnId } = await approvedPayment(library);
    const at = await seqOf(host, ({ type }) => type === 'signal.received');
    await rejects(host.fork(turnId, { at }), { code: 'FORK_REFUSED' });
  },

  'a retry of a fork does not use an answer of the original': async (library) => {
    const { host, turnId, attempts } = await approvedPayment(library);
    const fork = await host.fork(turnId, { at: await seqOf(host, ({ type }) => type === 'effect.settled') });
    strictEqual((await host.resume(fork.turnId)).status, 'error');
    strictEqual((await host.retry(fork.turnId)).status, 'paused');
    strictEqual(attempts(), 1);
  },

  'a fork has the grant of its turn, also one that is named after the turn': async (library) => {
    const { host } = forkHost(library);
    const run = (grant?: Grant) =>
      host.run({ loop: 'work', input: {}, sessionId: 'ada', key: 'k', ...(grant !== undefined && { grant }) });
    // The id of a turn with a key is known before the turn exists.
    const { turnId: id } = await forkHost(library).host.run({ loop: 'work', input: {}, sessionId: 'ada', key: 'k' });
    const { turnId } = await run({ id, allowedTools: ['*'], limits: { turns: 1 } });
    strictEqual(turnId, id);
    const fork = await forkAtStart(host, turnId);
    strictEqual((await host.resume(fork.turnId)).status, 'stopped');
  },

  'an entry between the start and the end of an effect is refused': async (library) => {
    const { host } = forkHost(library);
    const turnId = await runWork(host);
    await host.resume(turnId);
    const at = await seqOf(host, ({ type }) => type === 'effect.requested');
    await rejects(host.fork(turnId, { at }), { code: 'FORK_REFUSED' });
  },

  'a turn that has ended at the entry is not forked': async (library) => {
    const { host } = forkHost(library);
    const turnId = await runWork(host);
    await host.resume(turnId);
    const at = (await host.archive.entries('ada')).length - 1;
    await rejects(host.fork(turnId, { at }), { code: 'FORK_REFUSED' });
  },

  'a fork has idempotency keys of its own': async (library) => {
    const { host, keys } = forkHost(library);
    const turnId = await runWork(host);
    const fork = await forkAtSignal(host, turnId);
    await host.resume(turnId);
    await host.resume(fork.turnId);
    const [original = '', copy = ''] = keys.map((key) => key.slice(0, key.indexOf(':')));
    strictEqual(keys.length, 2);
    notStrictEqual(copy, '');
    notStrictEqual(copy, original);
  },

  'a fork does not continue the other open turns of its session': async (library) => {
    const { host, keys } = forkHost(library);
    const [, second] = [await runWork(host), await runWork(host)];
    const fork = await forkAtSignal(host, second);
    for (const { turnId, endedAt } of await host.archive.turns(fork.sessionId))
      if (endedAt === undefined) await host.resume(turnId);
    strictEqual(keys.length, 1);
  },
} as const satisfies { readonly [promise: string]: ForkCheck };
