// A process is killed, stopped or delayed, or an operation of it fails, at each step of opening, committing and
// closing.

import { ExpectationError, expect, expectFault, sleep } from '../support/store-attack.mjs';
import { assertAckedStored } from './owner-files.mjs';

/** The maximum duration of a takeover, without the start of the process. */
const TAKEOVER_MS = 2000;
/** The codes of Faults that an injected error may cause. */
const ERROR_CODES = [
  'STORE_FAILED',
  'STORE_FULL',
  'STORE_READ_ONLY',
  'STORE_DAMAGED',
  'SYNC_FAILED',
  'STORE_MISSING',
  'STORE_OWNED',
  'OWNERSHIP_LOST',
  'STORE_CLOSED',
  'STALE_WRITER',
];

/**
 * Skips the case if the process did not reach the step.
 * @param {import('../support/store-attack.mjs').Actor} actor
 * @param {number} step
 */
function assertReached(actor, step) {
  if (actor.at === undefined) throw new ExpectationError(`skipped: the process has no step ${step}`);
}

/**
 * Creates the store of an earlier process, which was killed or closed it; creates none for `fresh`.
 * @param {import('../support/store-attack.mjs').StoreFixture} fixture @param {string} before
 */
async function prepareStore(fixture, before) {
  const acked = new Map();
  if (before === 'fresh') return acked;
  const creator = await fixture.actor();
  const { next } = await creator.fill(fixture.path, 'before', 3);
  if (before === 'closed') await creator.must('close');
  await creator.kill();
  return acked.set('before', next);
}

/** Asserts that another process opens the store in time and can write, and that all acknowledged values are stored. */
async function assertTakeover(fixture, acked, actor) {
  const next = actor ?? (await fixture.actor());
  const at = Date.now();
  const answer = await next.do('open', { path: fixture.path });
  expect(answer.ok !== undefined, 'the next process to open the store', answer);
  const took = Date.now() - at;
  expect(took < TAKEOVER_MS, `a takeover within ${TAKEOVER_MS} ms`, `${took} ms`);
  const { fence, next: first } = await next.must('claim', { session: 'next' });
  await next.must('append', { session: 'next', fence, first });
  await next.kill();
  await assertAckedStored(fixture, fixture.path, new Map([...acked, ['next', first + 1]]));
}

/** A process is killed while it opens the store. */
async function killedOpening(fixture, before, step) {
  const acked = await prepareStore(fixture, before);
  const first = await fixture.actor({ plan: { how: 'kill' } });
  await first.must('armFault', { at: step });
  await first.do('open', { path: fixture.path });
  assertReached(first, step);
  await first.closed;
  await assertTakeover(fixture, acked);
}

/** The owner is killed while it commits its own appends and those of a client. The client continues. */
async function killedCommitting(fixture, step) {
  const { path } = fixture;
  const owner = await fixture.actor({ plan: { how: 'kill' } });
  const ownerFill = await owner.fill(path, 'own', 1);
  const client = await fixture.actor();
  const clientFill = await client.fill(path, 'theirs', 1);
  await owner.must('armFault', { at: step });
  const acked = new Map([
    ['own', ownerFill.next],
    ['theirs', clientFill.next],
  ]);
  const write = async (actor, session, { fence, next }) => {
    for (let n = 0; n < 6; n++) {
      const answer = await actor.do('append', { session, fence, first: next + n });
      if (!('ok' in answer)) return answer;
      acked.set(session, next + n + 1);
    }
  };
  const [, failure] = await Promise.all([write(owner, 'own', ownerFill), write(client, 'theirs', clientFill)]);
  assertReached(owner, step);
  expect(failure === undefined, 'every append of the client to succeed', failure);
  const values = await client.must('values', { session: 'theirs' });
  expect(new Set(values).size === values.length && values.length === clientFill.next + 6, 'each append once', values);
  await client.kill();
  await assertAckedStored(fixture, path, acked);
}

/** The owner is killed while it closes the store. Its client continues. */
async function killedClosing(fixture, step) {
  const { path } = fixture;
  const owner = await fixture.actor({ plan: { how: 'kill' } });
  const ownerFill = await owner.fill(path, 'own', 2);
  const client = await fixture.actor();
  const clientFill = await client.fill(path, 'theirs', 1);
  await owner.must('armFault', { at: step });
  void owner.do('close').catch(() => undefined);
  await Promise.race([owner.closed, sleep(1500)]);
  assertReached(owner, step);
  const at = Date.now();
  await client.must('append', { session: 'theirs', fence: clientFill.fence, first: clientFill.next });
  expect(Date.now() - at < TAKEOVER_MS, 'the client to continue within 2 s', Date.now() - at);
  await client.kill();
  await assertAckedStored(
    fixture,
    path,
    new Map([
      ['own', ownerFill.next],
      ['theirs', clientFill.next + 1],
    ]),
  );
}

/** A process is delayed while it opens or closes the store, and two other processes open it. */
async function delayed(fixture, before, operation, step) {
  const { path } = fixture;
  const acked = await prepareStore(fixture, before);
  const first = await fixture.actor({ plan: { how: 'pause', ms: 700 } });
  const others = [await fixture.actor(), await fixture.actor()];
  if (operation === 'close') acked.set('first', (await first.fill(path, 'first', 1)).next);
  await first.must('armFault', { at: step });
  const pending = first.do(operation, { path });
  await sleep(100);
  const opened = await Promise.all(others.map((other) => other.must('open', { path })));
  const result = await pending;
  assertReached(first, step);
  expect('ok' in result, `${operation} to succeed`, result);
  const all = [...opened, ...(operation === 'open' ? [result.ok] : [])];
  const writers = operation === 'open' ? [first, ...others] : others;
  const owners = await Promise.all(writers.map((writer) => writer.must('owner')));
  expect(owners.filter(({ here }) => here).length <= 1, 'one owner at most', { all, owners });
  for (const [n, writer] of writers.entries()) {
    const { fence, next } = await writer.must('claim', { session: `w${n}` });
    await writer.must('append', { session: `w${n}`, fence, first: next });
    acked.set(`w${n}`, next + 1);
  }
  for (const writer of [first, ...others]) await writer.kill();
  await assertAckedStored(fixture, path, acked);
}

/**
 * A process is stopped while it opens the store. Another process opens the store, or throws a Fault with the pid of the
 * stopped one. After SIGCONT, the first process continues without damage.
 */
async function stoppedOpening(fixture, before, step) {
  const { path } = fixture;
  const acked = await prepareStore(fixture, before);
  const first = await fixture.actor({ plan: { how: 'stop' } });
  await first.must('armFault', { at: step });
  const pending = first.do('open', { path }, 40_000);
  await sleep(400);
  assertReached(first, step);
  const second = await fixture.actor();
  const answer = await second.do('open', { path });
  if (answer.fault !== undefined) {
    expectFault(answer, ['STORE_OWNED']);
    expect(answer.fault.data?.pid === first.pid, `the pid ${first.pid} of the stopped process`, answer.fault);
    expect(/stopped|CONT/.test(answer.fault.message), 'a message that the process is stopped', answer.fault.message);
  } else {
    const { fence, next } = await second.must('claim', { session: 'second' });
    await second.must('append', { session: 'second', fence, first: next });
    acked.set('second', next + 1);
  }
  first.signalled('SIGCONT');
  const late = await pending;
  expect('ok' in late || late.fault?.name === 'Fault', 'the stopped process to continue', late);
  if ('ok' in late) {
    const { fence, next } = await first.must('claim', { session: 'first' });
    await first.must('append', { session: 'first', fence, first: next });
    acked.set('first', next + 1);
  }
  await first.kill();
  await second.kill();
  await assertAckedStored(fixture, path, acked);
}

/**
 * A step of the opening fails: the process throws a Fault, and this and other processes can open the store afterwards.
 */
async function failedOpening(fixture, before, step, how) {
  const { path } = fixture;
  const acked = await prepareStore(fixture, before);
  const first = await fixture.actor({ plan: { how } });
  await first.must('armFault', { at: step });
  const answer = await first.do('open', { path });
  assertReached(first, step);
  if (answer.fault !== undefined) expectFault(answer, ERROR_CODES);
  else await first.must('close');
  const second = await fixture.actor();
  await assertTakeover(fixture, acked, second);
  const reopened = await first.do('open', { path, store: 'again' });
  expect(reopened.ok !== undefined, 'the same process to open the store again', reopened);
}

/** A step of a commit fails: all acknowledged values are stored. */
async function failedCommitting(fixture, step, how) {
  const { path } = fixture;
  const owner = await fixture.actor({ plan: { how } });
  const { fence, next } = await owner.fill(path, 'own', 1);
  await owner.must('armFault', { at: step });
  const acked = new Map([['own', next]]);
  for (let n = 0; n < 6; n++) {
    const answer = await owner.do('append', { session: 'own', fence, first: acked.get('own') });
    if (answer.fault === undefined) acked.set('own', (acked.get('own') ?? 0) + 1);
    else expectFault(answer, ERROR_CODES);
    if (answer.fault?.code === 'STALE_WRITER') break;
  }
  assertReached(owner, step);
  await owner.kill();
  await assertAckedStored(fixture, path, acked);
}

/** A step of the closing fails: another process can use the store. */
async function failedClosing(fixture, step, how) {
  const { path } = fixture;
  const owner = await fixture.actor({ plan: { how } });
  const { next } = await owner.fill(path, 'own', 2);
  await owner.must('armFault', { at: step });
  const answer = await owner.do('close');
  assertReached(owner, step);
  if (answer.fault !== undefined) expectFault(answer, ERROR_CODES);
  await assertTakeover(fixture, new Map([['own', next]]));
}

/** @param {number} from @param {number} to @param {number} by */
const range = (from, to, by = 1) => Array.from({ length: Math.floor((to - from) / by) + 1 }, (_, n) => from + n * by);

export function cases() {
  const all = [];
  const add = (id, run, more = {}) => all.push({ id: `takeover.${id}`, run, ...more });
  for (const step of range(1, 117, 3))
    add(`killed.open.fresh.${step}`, (fixture) => killedOpening(fixture, 'fresh', step));
  for (const step of range(2, 120, 3))
    add(`killed.open.left.${step}`, (fixture) => killedOpening(fixture, 'killed', step));
  for (const step of range(1, 18)) add(`killed.commit.${step}`, (fixture) => killedCommitting(fixture, step));
  for (const step of range(1, 41, 2)) add(`killed.close.${step}`, (fixture) => killedClosing(fixture, step));
  for (const step of range(3, 117, 9))
    add(`held-up.open.fresh.${step}`, (fixture) => delayed(fixture, 'fresh', 'open', step), { waits: true });
  for (const step of range(6, 120, 9))
    add(`held-up.open.left.${step}`, (fixture) => delayed(fixture, 'killed', 'open', step), { waits: true });
  for (const step of range(1, 41, 4))
    add(`held-up.close.${step}`, (fixture) => delayed(fixture, 'fresh', 'close', step), { waits: true });
  for (const step of range(4, 118, 10))
    add(`stopped.open.${step}`, (fixture) => stoppedOpening(fixture, 'fresh', step), { waits: true });
  for (const [how, by] of [
    ['fail EIO', 2],
    ['fail ENOSPC', 7],
    ['fail EACCES', 9],
    ['fail EMFILE', 11],
  ]) {
    const name = how.slice(5);
    for (const step of range(1, 55, by))
      add(`refused.open.${name}.${step}`, (fixture) => failedOpening(fixture, 'fresh', step, how), { waits: true });
    for (const step of range(2, 40, by * 2))
      add(`refused.open-left.${name}.${step}`, (fixture) => failedOpening(fixture, 'killed', step, how), {
        waits: true,
      });
    for (const step of range(1, 6))
      add(`refused.commit.${name}.${step}`, (fixture) => failedCommitting(fixture, step, how));
    for (const step of range(1, 15))
      add(`refused.close.${name}.${step}`, (fixture) => failedClosing(fixture, step, how), { waits: true });
  }
  for (const code of [5, 10, 11, 13]) {
    for (const step of range(1, 25, code === 10 ? 1 : 3))
      add(`sqlite.open.${code}.${step}`, (fixture) => failedOpening(fixture, 'fresh', step, `sqlite ${code}`), {
        waits: true,
      });
    for (const step of [1, 2, 3])
      add(`sqlite.commit.${code}.${step}`, (fixture) => failedCommitting(fixture, step, `sqlite ${code}`));
    for (const step of [1, 2])
      add(`sqlite.close.${code}.${step}`, (fixture) => failedClosing(fixture, step, `sqlite ${code}`), { waits: true });
  }
  return all;
}
