// Checks of what an approved call performs: what was shown, once. Each holds on the intact library and fails when its
// guard is broken.

import { deepStrictEqual, strictEqual } from 'node:assert';
import type { Host } from '../../src/host/host.js';
import type { Effect, Scope } from '../../src/index.js';
import type { PolicyOption } from '../../src/loops/model-ref.js';
import type { Approval } from '../../src/protocol/approval.js';
import type { Json } from '../../src/protocol/index.js';
import type { Layer } from '../../src/protocol/session.js';
import { replyProvider } from '../support/scripted-agents.js';
import { run } from '../support/session-fixture.js';
import { type HostLibrary, hostParts, type LibraryParts } from './library.js';

/** The modules of the checks. */
export const approvedCallParts: LibraryParts = [...hostParts, 'layers/fixed-input.js'];
export type ApprovedCallLibrary = HostLibrary & typeof import('../../src/layers/fixed-input.js');

type ApprovedCallCheck = (library: ApprovedCallLibrary) => Promise<void>;

const ANY = { input: true as never, output: true as never };
const BOB = { to: 'bob' };
const TURN = { loop: 'pay', sessionId: 's' } as const;

/** Hosts on one store, with a tool that records its input and fails while `isDown`. */
function payingHosts(library: ApprovedCallLibrary, policy: PolicyOption) {
  const store = library.memoryStore();
  const clock = new library.ManualClock(1_000_000);
  const state = { isDown: false, payments: [] as Json[] };
  const pay = (input: unknown): null => {
    state.payments.push(input as Json);
    if (state.isDown) throw new Error('down');
    return null;
  };
  let hosts = 0;
  const open = (loop: unknown = library.defineLoop({ ...ANY, id: 'pay', policy, tool: pay as never })): Host => {
    hosts += 1;
    const providers = new Map(['first', 'spare'].map((id) => [id, replyProvider([{ text: 'paid' }], id)]));
    const registry = new library.Registry(new Map());
    registry.add(loop);
    return new library.Host({ store, clock, ids: library.seededIds(hosts), registry, providers });
  };
  return { state, open };
}

async function onlyPending(host: Host): Promise<Approval> {
  const [approval, ...others] = await host.archive.approvals();
  if (approval === undefined || others.length > 0) throw new Error('One pending approval was expected.');
  return approval;
}

async function approve(host: Host, turnId: string): Promise<string> {
  const { id } = await onlyPending(host);
  await host.answer({ id, approved: true, by: 'ada' });
  return (await host.resume(turnId)).status;
}

const REDACTING: PolicyOption = {
  approval: 'ask',
  filters: { before: [{ pattern: 'bob', action: 'redact', replacement: 'eve' }] },
};

export const approvedCallChecks = {
  'a layer cannot change what was admitted': async (library) => {
    const performed: Json[] = [];
    const perform = (input: Json) => performed.push(input);
    const [note, check] = library.fixedInput([]);
    const changing: Layer = (effect, _scope, next) => next({ ...effect, input: { to: 'eve' } });
    const options = { store: library.memoryStore(), clock: new library.ManualClock(1), ids: library.seededIds(1) };
    const session = await library.Session.open('s', { ...options, layers: () => [note, changing, check] });
    const effect: Effect = { kind: 'tool', name: 'pay', safety: 'once', input: BOB, perform };
    strictEqual((await run(session, (scope: Scope) => scope.effect(effect))).status, 'error');
    deepStrictEqual(performed, []);
  },
  'an approval shows the filtered arguments': async (library) => {
    const { open } = payingHosts(library, REDACTING);
    const host = open();
    await host.run({ ...TURN, input: BOB });
    deepStrictEqual((await onlyPending(host)).arguments, { to: 'eve' });
  },
  'an approval covers only the fallback models that it names': async (library) => {
    const { open } = payingHosts(library, {});
    const askOf = (model: string) =>
      library.defineLoop({
        ...{ ...ANY, id: 'pay', version: '1.0.0', prompt: { template: 'Pay.' }, model: { id: 'first', model: 'm' } },
        policy: { approval: 'ask', fallback: [{ id: 'spare', model }] },
      });
    const { turnId } = await open(askOf('a')).run({ ...TURN, input: null });
    strictEqual(await approve(open(askOf('b')), turnId), 'paused');
  },
  'a retry of a turn asks for another approval': async (library) => {
    const { state, open } = payingHosts(library, { approval: 'ask' });
    state.isDown = true;
    const host = open();
    const { turnId } = await host.run({ ...TURN, input: BOB });
    strictEqual(await approve(host, turnId), 'error');
    strictEqual((await host.retry(turnId)).status, 'paused');
    deepStrictEqual(state.payments, [BOB]);
  },
  'a retry asks again for a body that was approved as a whole': async (library) => {
    let runs = 0;
    const pay = library.defineLoop({
      ...{ ...ANY, id: 'pay' },
      run: async () => {
        runs += 1;
        throw new Error('down');
      },
    });
    const { open } = payingHosts(library, {});
    const host = open(pay);
    const grant = { allowedTools: ['*'], limits: {}, review: { pay: 'ask' } } as const;
    const { turnId } = await host.run({ ...TURN, input: BOB, grant });
    strictEqual(await approve(host, turnId), 'error');
    strictEqual((await host.retry(turnId)).status, 'paused');
    strictEqual(runs, 1);
  },
} as const satisfies Record<string, ApprovedCallCheck>;
