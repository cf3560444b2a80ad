// A process that is killed, stopped, held up or refused by the system at each step of opening, committing and closing.

import { Broken, expect, expectFault, sleep } from '../support/store-attack.mjs';
import { assertAll } from './records.mjs';

/** A takeover takes this long at most; the start of a process is not counted. */
const TAKEOVER_MS = 2000;
const ANY = [
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

/** @param {import('../support/store-attack.mjs').Actor} actor @param {number} step */
function assertReached(actor, step) {
  if (actor.at === undefined) throw new Broken(`skipped: there is no step ${step}`);
}

/** A store of before, left by a process that was killed or closed it. @param {import('../support/store-attack.mjs').Stage} stage @param {string} before */
async function prepared(stage, before) {
  const acked = new Map();
  if (before === 'fresh') return acked;
  const maker = await stage.actor();
  const { next } = await maker.fill(stage.path, 'before', 3);
  if (before === 'closed') await maker.must('close');
  await maker.kill();
  return acked.set('before', next);
}

/** The next process opens the store in time, finds all that was acknowledged, and can write. */
async function assertTakenOver(stage, acked, actor) {
  const next = actor ?? (await stage.actor());
  const at = Date.now();
  const answer = await next.do('open', { path: stage.path });
  expect(answer.ok !== undefined, 'the next process to open the store', answer);
  const took = Date.now() - at;
  expect(took < TAKEOVER_MS, `a takeover within ${TAKEOVER_MS} ms`, `${took} ms`);
  const { fence, next: first } = await next.must('claim', { session: 'next' });
  await next.must('append', { session: 'next', fence, first });
  await next.kill();
  await assertAll(stage, stage.path, new Map([...acked, ['next', first + 1]]));
}

/** Killed while it opens. */
async function killedOpening(stage, before, step) {
  const acked = await prepared(stage, before);
  const first = await stage.actor({ plan: { how: 'kill' } });
  await first.must('go', { at: step });
  await first.do('open', { path: stage.path });
  assertReached(first, step);
  await first.closed;
  await assertTakenOver(stage, acked);
}

/** Killed while it commits, alone and for a client; the client goes on. */
async function killedCommitting(stage, step) {
  const { path } = stage;
  const owner = await stage.actor({ plan: { how: 'kill' } });
  const own = await owner.fill(path, 'own', 1);
  const client = await stage.actor();
  const theirs = await client.fill(path, 'theirs', 1);
  await owner.must('go', { at: step });
  const acked = new Map([
    ['own', own.next],
    ['theirs', theirs.next],
  ]);
  const write = async (actor, session, { fence, next }) => {
    for (let n = 0; n < 6; n++) {
      const answer = await actor.do('append', { session, fence, first: next + n });
      if (!('ok' in answer)) return answer;
      acked.set(session, next + n + 1);
    }
  };
  const [, flaw] = await Promise.all([write(owner, 'own', own), write(client, 'theirs', theirs)]);
  assertReached(owner, step);
  expect(flaw === undefined, 'every append of the client to succeed', flaw);
  const values = await client.must('values', { session: 'theirs' });
  expect(new Set(values).size === values.length && values.length === theirs.next + 6, 'each append once', values);
  await client.kill();
  await assertAll(stage, path, acked);
}

/** Killed while it closes, with a client at it. */
async function killedClosing(stage, step) {
  const { path } = stage;
  const owner = await stage.actor({ plan: { how: 'kill' } });
  const own = await owner.fill(path, 'own', 2);
  const client = await stage.actor();
  const theirs = await client.fill(path, 'theirs', 1);
  await owner.must('go', { at: step });
  void owner.do('close').catch(() => undefined);
  await Promise.race([owner.closed, sleep(1500)]);
  assertReached(owner, step);
  const at = Date.now();
  await client.must('append', { session: 'theirs', fence: theirs.fence, first: theirs.next });
  expect(Date.now() - at < TAKEOVER_MS, 'the client to go on within 2 s', Date.now() - at);
  await client.kill();
  await assertAll(
    stage,
    path,
    new Map([
      ['own', own.next],
      ['theirs', theirs.next + 1],
    ]),
  );
}

/** Held up for a moment while it opens or closes, and two others come. */
async function held(stage, before, what, step) {
  const { path } = stage;
  const acked = await prepared(stage, before);
  const first = await stage.actor({ plan: { how: 'pause', ms: 700 } });
  const others = [await stage.actor(), await stage.actor()];
  if (what === 'close') acked.set('first', (await first.fill(path, 'first', 1)).next);
  await first.must('go', { at: step });
  const doing = first.do(what, { path });
  await sleep(100);
  const opened = await Promise.all(others.map((other) => other.must('open', { path })));
  const mine = await doing;
  assertReached(first, step);
  expect('ok' in mine, `${what} to succeed`, mine);
  const all = [...opened, ...(what === 'open' ? [mine.ok] : [])];
  const writers = what === 'open' ? [first, ...others] : others;
  const now = await Promise.all(writers.map((writer) => writer.must('owner')));
  expect(now.filter(({ here }) => here).length <= 1, 'one owner at most', { all, now });
  for (const [n, writer] of writers.entries()) {
    const { fence, next } = await writer.must('claim', { session: `w${n}` });
    await writer.must('append', { session: `w${n}`, fence, first: next });
    acked.set(`w${n}`, next + 1);
  }
  for (const writer of [first, ...others]) await writer.kill();
  await assertAll(stage, path, acked);
}

/** Stopped while it opens: others are told who it is, or go on without it; continued, it does no harm. */
async function stopped(stage, before, step) {
  const { path } = stage;
  const acked = await prepared(stage, before);
  const first = await stage.actor({ plan: { how: 'stop' } });
  await first.must('go', { at: step });
  const doing = first.do('open', { path }, 40_000);
  await sleep(400);
  assertReached(first, step);
  const second = await stage.actor();
  const answer = await second.do('open', { path });
  if (answer.fault !== undefined) {
    expectFault(answer, ['STORE_OWNED']);
    expect(answer.fault.data?.pid === first.pid, `the pid ${first.pid} of the stopped process`, answer.fault);
    expect(/stopped|CONT/.test(answer.fault.message), 'that it is stopped to be told', answer.fault.message);
  } else {
    const { fence, next } = await second.must('claim', { session: 'second' });
    await second.must('append', { session: 'second', fence, first: next });
    acked.set('second', next + 1);
  }
  first.signalled('SIGCONT');
  const late = await doing;
  expect('ok' in late || late.fault?.name === 'Fault', 'the process that was stopped to go on', late);
  if ('ok' in late) {
    const { fence, next } = await first.must('claim', { session: 'first' });
    await first.must('append', { session: 'first', fence, first: next });
    acked.set('first', next + 1);
  }
  await first.kill();
  await second.kill();
  await assertAll(stage, path, acked);
}

/** The system refuses a step of the opening: it is told as a Fault, and neither this process nor another is kept out afterwards. */
async function failedOpening(stage, before, step, how) {
  const { path } = stage;
  const acked = await prepared(stage, before);
  const first = await stage.actor({ plan: { how } });
  await first.must('go', { at: step });
  const answer = await first.do('open', { path });
  assertReached(first, step);
  if (answer.fault !== undefined) expectFault(answer, ANY);
  else await first.must('close');
  const second = await stage.actor();
  await assertTakenOver(stage, acked, second);
  const again = await first.do('open', { path, store: 'again' });
  expect(again.ok !== undefined, 'the same process to open it again', again);
}

/** The system refuses a step of a commit: what was acknowledged is there. */
async function failedCommitting(stage, step, how) {
  const { path } = stage;
  const owner = await stage.actor({ plan: { how } });
  const { fence, next } = await owner.fill(path, 'own', 1);
  await owner.must('go', { at: step });
  const acked = new Map([['own', next]]);
  for (let n = 0; n < 6; n++) {
    const answer = await owner.do('append', { session: 'own', fence, first: acked.get('own') });
    if (answer.fault === undefined) acked.set('own', (acked.get('own') ?? 0) + 1);
    else expectFault(answer, ANY);
    if (answer.fault?.code === 'STALE_WRITER') break;
  }
  assertReached(owner, step);
  await owner.kill();
  await assertAll(stage, path, acked);
}

/** The system refuses a step of the closing: another process, or this one again, can use the store. */
async function failedClosing(stage, step, how) {
  const { path } = stage;
  const owner = await stage.actor({ plan: { how } });
  const { next } = await owner.fill(path, 'own', 2);
  await owner.must('go', { at: step });
  const answer = await owner.do('close');
  assertReached(owner, step);
  if (answer.fault !== undefined) expectFault(answer, ANY);
  await assertTakenOver(stage, new Map([['own', next]]));
}

/** @param {number} from @param {number} to @param {number} by */
const range = (from, to, by = 1) => Array.from({ length: Math.floor((to - from) / by) + 1 }, (_, n) => from + n * by);

export function cases() {
  const all = [];
  const add = (id, run, more = {}) => all.push({ id: `takeover.${id}`, run, ...more });
  for (const step of range(1, 117, 3)) add(`killed.open.fresh.${step}`, (stage) => killedOpening(stage, 'fresh', step));
  for (const step of range(2, 120, 3)) add(`killed.open.left.${step}`, (stage) => killedOpening(stage, 'killed', step));
  for (const step of range(1, 18)) add(`killed.commit.${step}`, (stage) => killedCommitting(stage, step));
  for (const step of range(1, 41, 2)) add(`killed.close.${step}`, (stage) => killedClosing(stage, step));
  for (const step of range(3, 117, 9))
    add(`held-up.open.fresh.${step}`, (stage) => held(stage, 'fresh', 'open', step), { waits: true });
  for (const step of range(6, 120, 9))
    add(`held-up.open.left.${step}`, (stage) => held(stage, 'killed', 'open', step), { waits: true });
  for (const step of range(1, 41, 4))
    add(`held-up.close.${step}`, (stage) => held(stage, 'fresh', 'close', step), { waits: true });
  for (const step of range(4, 118, 10))
    add(`stopped.open.${step}`, (stage) => stopped(stage, 'fresh', step), { waits: true });
  for (const [how, by] of [
    ['fail EIO', 2],
    ['fail ENOSPC', 7],
    ['fail EACCES', 9],
    ['fail EMFILE', 11],
  ]) {
    const name = how.slice(5);
    for (const step of range(1, 55, by))
      add(`refused.open.${name}.${step}`, (stage) => failedOpening(stage, 'fresh', step, how), { waits: true });
    for (const step of range(2, 40, by * 2))
      add(`refused.open-left.${name}.${step}`, (stage) => failedOpening(stage, 'killed', step, how), { waits: true });
    for (const step of range(1, 6))
      add(`refused.commit.${name}.${step}`, (stage) => failedCommitting(stage, step, how));
    for (const step of range(1, 15))
      add(`refused.close.${name}.${step}`, (stage) => failedClosing(stage, step, how), { waits: true });
  }
  for (const code of [5, 10, 11, 13]) {
    for (const step of range(1, 25, code === 10 ? 1 : 3))
      add(`sqlite.open.${code}.${step}`, (stage) => failedOpening(stage, 'fresh', step, `sqlite ${code}`), {
        waits: true,
      });
    for (const step of [1, 2, 3])
      add(`sqlite.commit.${code}.${step}`, (stage) => failedCommitting(stage, step, `sqlite ${code}`));
    for (const step of [1, 2])
      add(`sqlite.close.${code}.${step}`, (stage) => failedClosing(stage, step, `sqlite ${code}`), { waits: true });
  }
  return all;
}
