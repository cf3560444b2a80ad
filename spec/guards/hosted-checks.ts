// Checks of how hosted loops are driven: requests, ends, pauses, authority and context.

import { deepStrictEqual, ok, rejects, strictEqual } from 'node:assert';
import { defineHostedLoop } from '../../src/host/hosted/define-hosted-loop.js';
import type { HostedProjection } from '../../src/protocol/hosted-loop.js';
import type { Json } from '../../src/protocol/json.js';
import { textProvider } from '../support/host-fixture.js';
import { counter, type HostedFixture, hostedFixture, START } from '../support/hosted-fixture.js';
import { ASKING, appendTo } from '../support/hosted-stops.js';
import { interruptedStore } from '../support/interrupted-store.js';
import { agentDef } from '../support/scripted-agents.js';
import {
  entriesOf,
  FIRST,
  HOUR_MS,
  HOURLY,
  type HostedCheck,
  type HostedLibrary,
  STREAM,
  worked,
} from './hosted-library.js';

const BY = { by: 'ada' };

const typesIn = async ({ store }: HostedFixture): Promise<readonly string[]> =>
  (await entriesOf(store, STREAM)).map(({ type }) => type);

const countOf = async (fixture: HostedFixture, wanted: string): Promise<number> =>
  (await typesIn(fixture)).filter((type) => type === wanted).length;

/** The state of a loop that was started with an hourly schedule, with these entries. */
function stateOf(
  { HostedLoopState, HOSTED_STARTED }: HostedLibrary,
  ...entries: readonly [type: string, value: Json][]
) {
  const state = new HostedLoopState();
  const document = counter(HOURLY);
  const started = { document, digest: '', grant: document.grant, at: START, hasCode: false };
  state.apply({ type: HOSTED_STARTED, key: 'counter', value: started as unknown as Json });
  for (const [type, value] of entries) state.apply({ type, key: 'counter#1', value });
  return state;
}

/** Runs an agent twice in a session, and returns what its model got. */
async function chat(library: HostedLibrary, history: 'none' | 'session') {
  const provider = textProvider(['The secret is 42.', 'Done.', 'Third.', 'Fourth.']);
  const fixture = await worked(
    library,
    { loop: 'chat', input: { prompt: 'What?' }, turn: { history: 'session' }, stop: { maxTurns: 2 } },
    { definitions: [agentDef('chat')], providers: [provider] },
  );
  const run = () => fixture.host.run({ loop: 'chat', input: { prompt: 'What?' }, sessionId: 's', history });
  return { fixture, run, requests: provider.requests };
}

export const hostedChecks = {
  'a hosted loop is started once': async (library) => {
    const fixture = await worked(library, HOURLY);
    await fixture.start(counter(HOURLY));
    strictEqual(await countOf(fixture, library.HOSTED_STARTED), 1);
  },
  'a hosted loop has one content': async (library) => {
    const fixture = await worked(library, HOURLY);
    await rejects(fixture.start(counter({ ...HOURLY, input: { from: 1 } })), { code: 'HOSTED_LOOP_CONFLICT' });
  },
  'a paused loop decides nothing about its next turn': async (library) => {
    const fixture = await worked(library, HOURLY);
    await fixture.host.hosted.pause('counter', BY);
    await fixture.store.journal.remove(FIRST);
    await fixture.clock.advance(HOUR_MS);
    await fixture.step();
    strictEqual((await fixture.host.hosted.status('counter')).status, 'paused');
  },
  'a paused loop is not due': async (library) => {
    const { HOSTED_PLANNED, HOSTED_PAUSED, HOSTED_RESUMED, dueTimeOf } = library;
    const plan = [HOSTED_PLANNED, { dueAt: START, through: START }] as const;
    const paused = [HOSTED_PAUSED, { at: START, by: 'ada' }] as const;
    strictEqual(dueTimeOf(stateOf(library, [...plan], [...paused])), undefined);
    strictEqual(dueTimeOf(stateOf(library, [...plan], [...paused], [HOSTED_RESUMED, {}])), START);
  },
  'a turn is not requested if the loop was paused meanwhile': async (library) => {
    const { store, arm } = interruptedStore(library.memoryStore(), FIRST, 'read');
    const fixture = await worked(library, HOURLY, { store });
    const other = fixture.restart();
    await fixture.clock.advance(HOUR_MS);
    arm(() => other.host.hosted.pause('counter', BY));
    await fixture.step();
    deepStrictEqual([fixture.inputs.length, await countOf(fixture, library.HOSTED_REQUESTED)], [1, 1]);
  },
  'the end of a turn is recorded once': async (library) => {
    const parts: { fixture?: HostedFixture } = {};
    const ended = { turn: 1, turnId: '', status: 'ok', receipt: '', at: START, head: '' };
    const count = async () => {
      if (parts.fixture !== undefined)
        await appendTo(parts.fixture, [{ type: library.HOSTED_ENDED, key: 'counter#1', value: ended }]);
      return {};
    };
    parts.fixture = hostedFixture({ classes: library, tools: { count } });
    await parts.fixture.start(counter(HOURLY));
    await parts.fixture.step();
    strictEqual(await countOf(parts.fixture, library.HOSTED_ENDED), 1);
  },
  'a loop whose turn goes on is due until the turn has ended': async (library) => {
    const due: string[] = [];
    const store = library.memoryStore();
    const count = async () => {
      due.push(...(await store.dueTurns.list(START, 10)).map(({ session }) => session));
      return {};
    };
    const fixture = await worked(library, { ...HOURLY, ...ASKING }, { store, tools: { count } });
    for (const { id } of await fixture.host.archive.approvals())
      await fixture.host.answer({ id, approved: true, by: 'ada' });
    await fixture.work();
    ok(due.includes(STREAM), 'a process that ends here would leave the turn open');
  },
  'only the open turn of a loop can be continued': async (library) => {
    const fixture = await worked(library, HOURLY);
    await fixture.clock.advance(HOUR_MS);
    const [turn] = await fixture.host.hosted.turns('counter');
    await fixture.host.resume(turn?.turnId ?? '').catch(() => undefined);
    strictEqual(fixture.inputs.length, 1);
  },
  'an input that code makes is not guessed without the code': async (library) => {
    const fixture = await worked(library, { id: 'other', stop: { maxTurns: 1 } });
    const next = ({ turn }: HostedProjection) => ({ turn });
    await fixture.host.hosted.start(defineHostedLoop({ ...counter(), next }), BY);
    await fixture.restart().work();
    strictEqual(fixture.inputs.length, 1);
  },
  'a retry waits for its delay': async (library) => {
    const { HOSTED_PLANNED, HOSTED_ENDED, nextCauseOf } = library;
    const ended = { turn: 1, turnId: '', status: 'error', receipt: '', at: START, head: '', retryAt: START + 9 };
    const plan = { dueAt: START, through: START };
    const state = stateOf(library, [HOSTED_ENDED, ended as unknown as Json], [HOSTED_PLANNED, plan]);
    strictEqual(nextCauseOf(state, START + 8), undefined);
    strictEqual(nextCauseOf(state, START + 9)?.cause, 'retry');
  },
  'no turn is early': async (library) => {
    const state = stateOf(library, [library.HOSTED_PLANNED, { dueAt: START + 9, through: START + 9 }]);
    strictEqual(library.nextCauseOf(state, START + 8), undefined);
    strictEqual(library.nextCauseOf(state, START + 9)?.cause, 'schedule');
  },
  'due times before a planned one are dealt with': async (library) => {
    const { through } = stateOf(library, [library.HOSTED_PLANNED, { dueAt: START + 9, through: START + 9 }]).now;
    strictEqual(through, START + 8);
  },
  'a stream that was cut off is refused': async (library) => {
    const lengths = new Map<string, number>();
    const { HostedStreams, HOSTED_STARTED } = library;
    const witness = {
      read: async (name: string) => lengths.get(name),
      has: async (name: string) => lengths.has(name),
      write: async (name: string, length: number) => void lengths.set(name, length),
    };
    const store = library.memoryStore();
    const open = () => new HostedStreams(store, new library.ManualClock(START), witness as never);
    const streams = open();
    const stream = await streams.get('counter');
    const value = { document: counter(), digest: '', at: START } as unknown as Json;
    await streams.decide(stream, () => [{ type: HOSTED_STARTED, key: 'counter', value }]);
    strictEqual((await open().get('counter')).length, 1);
    await store.journal.remove(STREAM);
    await rejects(open().get('counter'), { code: 'STORE_DAMAGED' });
  },
  'a turn may only get less than its loop': async ({ narrowGrant }) => {
    const grant = { allowedTools: ['count'], limits: { effects: 2 } };
    for (const wider of [{ allowedTools: ['pay'] }, { limits: { effects: 3 } }])
      await rejects(async () => narrowGrant(grant, [wider]), { code: 'GRANT_WIDENED' });
    strictEqual(narrowGrant(grant, [{ limits: { effects: 1 } }]).limits.effects, 1);
  },
  'each turn has limits of its own': async (library) => {
    const turn = { grant: { limits: { effects: 2 } } };
    const fixture = await worked(library, { loop: 'thrice', grant: { allowedTools: ['*'], limits: {} }, turn });
    strictEqual(fixture.inputs.length, 2);
  },
  'a session of a hosted loop is closed to others': async (library) => {
    const { host } = await worked(library, HOURLY);
    await rejects(host.run({ loop: 'count', input: {}, sessionId: FIRST }), { code: 'HOSTED_LOOP_CONFLICT' });
    await rejects(host.sendMessage({ sessionId: FIRST, text: 'Psst.' }), { code: 'HOSTED_LOOP_CONFLICT' });
    await rejects(host.signal({ sessionId: FIRST, name: 'hint' }), { code: 'HOSTED_LOOP_CONFLICT' });
  },
  'a turn of a hosted loop is not forked': async (library) => {
    const { host } = await worked(library, ASKING);
    const { turnId } = (await host.hosted.turns('counter'))[0] ?? { turnId: FIRST };
    await rejects(host.fork(turnId, { at: (await host.archive.entries(FIRST)).length - 1 }), {
      code: 'HOSTED_LOOP_CONFLICT',
    });
  },
  'a turn without history sees none': async (library) => {
    const { run, requests } = await chat(library, 'none');
    for (let turn = 0; turn < 2; turn++) await run();
    const sent = requests.map(({ prompt }) => String(prompt));
    deepStrictEqual([sent[1]?.includes('secret'), sent[3]?.includes('Third.')], [true, false]);
  },
  'what a turn sees of earlier ones is recorded': async (library) => {
    const { fixture } = await chat(library, 'session');
    const opened = (await entriesOf(fixture.store, 'hosted:counter')).filter(
      ({ type }) => type === library.TURN_OPENED,
    );
    deepStrictEqual(
      opened.map(({ value }) => (value as { seen?: { messages: number } }).seen?.messages),
      [0, 2],
    );
  },
  'what a body records is no opening': async ({ openingOf, TURN_OPENED }) => {
    const entry = { seq: 0, at: START, type: TURN_OPENED, value: { history: 'session' } };
    strictEqual(openingOf('t', [{ ...entry, key: 't/0' }]), undefined);
    deepStrictEqual(openingOf('t', [{ ...entry, key: '#t' }]), { history: 'session' });
  },
} as const satisfies { readonly [promise: string]: HostedCheck };
