// Checks of the stops of hosted loops.

import { deepStrictEqual, match, ok, strictEqual } from 'node:assert';
import type { HostedLoopDocument, StopPolicy } from '../../src/protocol/hosted-loop.js';
import type { Json } from '../../src/protocol/json.js';
import type { EndedTurn } from '../../src/views/hosted-loop.js';
import { counter, type HostedFixture, hostedFixture, START } from '../support/hosted-fixture.js';
import { ASKING, appendTo, rewrite, stoppedWhileStarting } from '../support/hosted-stops.js';
import { testKeys } from '../support/receipt-keys.js';
import {
  assertStopped,
  entriesOf,
  FIRST,
  HOUR_MS,
  HOURLY,
  type HostedCheck,
  type HostedLibrary,
  STREAM,
  worked,
} from './hosted-library.js';

const SEALED = 'rondo.receipt.sealed';
const DEADLINE = new Date(START + HOUR_MS / 2).toISOString();

/** Asserts why a policy stops after a turn. */
const stopsAfter =
  (reason: string, stop: Partial<StopPolicy>, facts: object): HostedCheck =>
  async ({ stopAfterTurn }) => {
    const document = counter({ stop: { maxTurns: 9, ...stop } });
    const ended = {
      turns: 1,
      now: START,
      status: 'ok',
      output: {},
      wasDenied: false,
      unchanged: 0,
      failures: 0,
    } as const;
    strictEqual(stopAfterTurn(document, { ...ended, ...facts })?.reason, reason);
  };

/** A loop whose second turn is due, after its first turn was changed in the store. */
async function afterChange(library: HostedLibrary, change: Parameters<typeof rewrite>[2]): Promise<HostedFixture> {
  const fixture = await worked(library, HOURLY);
  await fixture.clock.advance(HOUR_MS);
  await rewrite(fixture.store, FIRST, change);
  await fixture.work();
  return fixture;
}

/** A loop that finds a turn under the key of its first, which another loop with its id has had. */
async function foreignFirstTurn(library: HostedLibrary, more: Partial<HostedLoopDocument>): Promise<HostedFixture> {
  const other = await worked(library, { ...HOURLY, ...more, stop: { maxTurns: 9 } });
  const fixture = hostedFixture({ classes: library });
  const { fence } = await fixture.store.journal.claim(FIRST);
  const entries = await entriesOf(other.store, FIRST);
  await fixture.store.journal.append({ session: FIRST, fence, firstSeq: 0, entries });
  await fixture.start(counter({ ...HOURLY, ...more }));
  await fixture.work();
  return fixture;
}

/** Verifies the first turn of a loop, of which other facts are recorded. */
async function verifyOther(library: HostedLibrary, change: Partial<EndedTurn>) {
  const { host, store } = await worked(library, HOURLY);
  const ended = (await entriesOf(store, STREAM)).find(({ type }) => type === library.HOSTED_ENDED);
  const deps = {
    keys: testKeys(),
    storedEntriesOf: (session: string) => host.archive.storedEntriesOf(session),
    logIndexes: async () => new Map(),
  };
  return library.verifyPredecessor(deps, 'counter', { ...(ended?.value as unknown as EndedTurn), ...change });
}

const answered = async (fixture: HostedFixture, approved: boolean): Promise<void> => {
  for (const { id } of await fixture.host.archive.approvals()) await fixture.host.answer({ id, approved, by: 'ada' });
  await fixture.work();
};

export const hostedStopChecks = {
  'a loop has no more turns than its maximum': async ({ stopBeforeTurn }) => {
    const document = counter({ stop: { maxTurns: 3 } });
    strictEqual(stopBeforeTurn(document, { turns: 2, now: START }), undefined);
    for (const turns of [3, 4, Number.NaN])
      strictEqual(stopBeforeTurn(document, { turns, now: START })?.reason, 'max_turns');
  },
  'no turn starts from the deadline on': async ({ stopBeforeTurn }) => {
    const document = counter({ stop: { maxTurns: 3, deadline: DEADLINE } });
    const reasonAt = (now: number) => stopBeforeTurn(document, { turns: 0, now })?.reason;
    deepStrictEqual([reasonAt(START), reasonAt(START + HOUR_MS / 2)], [undefined, 'deadline']);
  },
  'a denied approval stops a loop': stopsAfter('approval', {}, { wasDenied: true }),
  'a failed turn stops a loop': stopsAfter('turn_failed', {}, { status: 'error', failures: 1 }),
  'a terminal output stops a loop': stopsAfter(
    'terminal',
    { terminal: { path: '$.a', equals: 1 } },
    { output: { a: 1 } },
  ),
  'a confidence that is not known stops a loop': stopsAfter(
    'confidence',
    { confidence: { path: '$.a', atLeast: 1 } },
    { output: {} },
  ),
  'a confidence that is reached stops a loop': stopsAfter(
    'confidence',
    { confidence: { path: '$.a', atLeast: 1 } },
    { output: { a: 1 } },
  ),
  'turns without a new output stop a loop': stopsAfter('no_progress', { noProgress: 2 }, { unchanged: 2 }),
  'an approval that is needed stops a loop that says so': async (library) => {
    const fixture = await worked(library, { ...HOURLY, ...ASKING, stop: { maxTurns: 9, approval: 'pending' } });
    await assertStopped(fixture, 'approval', 0);
  },
  'a turn that waits is stopped at the deadline, also while its loop is paused': async (library) => {
    const fixture = await worked(library, { ...HOURLY, ...ASKING, stop: { maxTurns: 9, deadline: DEADLINE } });
    await fixture.host.hosted.pause('counter', { by: 'ada' });
    await fixture.clock.advance(HOUR_MS);
    await fixture.work();
    await assertStopped(fixture, 'deadline', 0);
  },
  'a turn that runs at the deadline starts nothing more': async (library) => {
    const clock = new library.ManualClock(START);
    let calls = 0;
    const count = async () => {
      calls += 1;
      await clock.advance(HOUR_MS);
      return calls;
    };
    const grant = { allowedTools: ['*'], limits: {} };
    const document = { loop: 'thrice', grant, stop: { maxTurns: 9, deadline: DEADLINE } };
    const { host } = await worked(library, document, { clock, tools: { count } });
    deepStrictEqual([calls, (await host.hosted.status('counter')).reason], [1, 'deadline']);
  },
  'a turn whose grant has expired can be cancelled': async (library) => {
    const fixture = await worked(library, { ...HOURLY, ...ASKING, stop: { maxTurns: 9, deadline: DEADLINE } });
    await fixture.clock.advance(HOUR_MS);
    await fixture.work();
    const [turn] = await fixture.host.hosted.turns('counter');
    const { turn: stored } = await fixture.host.archive.get(turn?.turnId ?? '');
    strictEqual(stored.endedEntry?.error?.code, 'CANCELLED');
  },
  'the open turn of a stopped loop is cancelled': async (library) => {
    const fixture = await worked(library, { ...HOURLY, ...ASKING });
    await appendTo(fixture, [
      { type: library.HOSTED_STOPPED, key: 'stop', value: { reason: 'stopped_by', at: START } },
    ]);
    await fixture.restart().work();
    const [turn] = await fixture.host.hosted.turns('counter');
    const { turn: stored } = await fixture.host.archive.get(turn?.turnId ?? '');
    strictEqual(stored.endedEntry?.error?.code, 'CANCELLED');
  },
  'a stopped loop plans no turn': async (library) => {
    const fixture = await worked(library, { ...HOURLY, ...ASKING });
    await fixture.host.hosted.stop('counter', { by: 'ada' });
    const last = (await entriesOf(fixture.store, STREAM)).at(-1);
    strictEqual(last?.type, library.HOSTED_ENDED);
  },
  'a stopped loop does not start again': async (library) => {
    const fixture = await worked(library);
    const again = fixture.host.hosted.start(counter(), { by: 'eve' });
    strictEqual(await again.then(String, ({ code }) => code), 'HOSTED_LOOP_CONFLICT');
  },
  'a budget that is used up stops a loop': async (library) => {
    const grant = { allowedTools: ['count'], limits: { effects: 1 } };
    const fixture = await worked(library, { ...HOURLY, grant });
    await fixture.clock.advance(HOUR_MS);
    await fixture.work();
    await assertStopped(fixture, 'budget', 1);
  },
  'a turn whose grant is refused stops a loop': async (library) => {
    await assertStopped(await worked(library, { turn: { grant: { allowedTools: ['pay'] } } }), 'refused', 0);
  },
  'an output is compared with the last one, also after a failure': async ({ unchangedAfter }) => {
    const ended = { status: 'ok', output: 'a' } as const;
    strictEqual(unchangedAfter({ output: 'a', unchanged: 1 }, ended), 2);
    strictEqual(unchangedAfter({ output: 'b', unchanged: 1 }, ended), 0);
  },
  'a retry runs with the input of the turn that failed': async (library) => {
    const inputs: unknown[] = [];
    const count = async (input: unknown) => {
      if (inputs.push(input) === 1) throw new Error('down');
      return { n: 1 };
    };
    const document = { next: '$.last.output', retry: { maxFailures: 2 }, stop: { maxTurns: 2 } };
    await worked(library, document, { tools: { count } });
    deepStrictEqual(inputs, [{ from: 0 }, { from: 0 }]);
  },
  'a stop reaches a turn that is about to start': async (library) => {
    const { host } = await stoppedWhileStarting(library);
    strictEqual((await host.hosted.turns('counter'))[0]?.status, 'cancelled');
  },
  'a turn without its receipt is followed by none': async (library) => {
    const fixture = await afterChange(library, (entries) =>
      entries.map((entry) =>
        entry.type === SEALED ? { ...entry, value: { ...(entry.value as object), hash: 'other' } as Json } : entry,
      ),
    );
    await assertStopped(fixture, 'missing_receipt', 1);
  },
  'a turn with a newer receipt is followed by none': async (library) => {
    const fixture = await afterChange(library, (entries) => [
      ...entries,
      ...entries
        .filter(({ type }) => type === SEALED)
        .map((entry) => ({
          ...entry,
          key: '#receipt/1',
          value: { ...(entry.value as object), sequence: 1, hash: 'newer' } as Json,
        })),
    ]);
    await assertStopped(fixture, 'stale_projection', 1);
  },
  'a turn with an invalid receipt is followed by none': async (library) => {
    const fixture = await afterChange(library, (entries) =>
      entries.map((entry) => (entry.type === 'call.completed' ? { ...entry, value: { n: 9 } } : entry)),
    );
    await assertStopped(fixture, 'missing_receipt', 1);
    match((await fixture.host.hosted.status('counter')).message ?? '', /is not valid: /);
  },
  'the receipt of another turn is none': async (library) => {
    strictEqual((await verifyOther(library, {})).stop, undefined);
    const others: Partial<EndedTurn>[] = [{ turn: 2 }, { head: 'x' }, { previous: 'sha256:x' }, { status: 'error' }];
    for (const change of others) ok((await verifyOther(library, change)).stop, JSON.stringify(change));
  },
  'a request whose projection moved is not run': async (library) => {
    const fixture = hostedFixture({ classes: library });
    await fixture.start(counter());
    const made = { turn: 1, at: START, cause: 'schedule', dueAt: START, through: START, input: {}, head: 'a' };
    const [started] = await entriesOf(fixture.store, STREAM);
    await appendTo(fixture, [
      { type: library.HOSTED_REQUESTED, key: 'counter#1', value: made },
      { type: library.HOSTED_STARTED, key: 'counter', value: started?.value as Json },
    ]);
    await fixture.work();
    await assertStopped(fixture, 'stale_projection', 0);
  },
  'a turn that waits under the key of another request is not continued': async (library) => {
    const fixture = await foreignFirstTurn(library, ASKING);
    await answered(fixture, true);
    await assertStopped(fixture, 'stale_projection', 0);
  },
  'a turn that ended under the key of another request is not taken for its own': async (library) => {
    await assertStopped(await foreignFirstTurn(library, {}), 'stale_projection', 0);
  },
} as const satisfies { readonly [promise: string]: HostedCheck };
