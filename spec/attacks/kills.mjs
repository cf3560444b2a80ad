// Owners are killed, stopped or closed at random moments while other processes write, open the store and take over.

import { rmSync } from 'node:fs';
import { expect, expectFault, sleep } from '../support/store-attack.mjs';
import { assertAckedStored } from './owner-files.mjs';

const TAKEOVER_MS = 2000;

/**
 * Starts `count` processes that open the store and append continuously.
 * @param {import('../support/store-attack.mjs').StoreFixture} fixture
 * @param {number} count
 */
async function startWriters(fixture, count) {
  const actors = await Promise.all(Array.from({ length: count }, () => fixture.actor()));
  for (const actor of actors) await actor.must('open', { path: fixture.path });
  for (const [n, actor] of actors.entries()) {
    actor.session = `p${n}`;
    actor.pumped = actor.do('pump', { session: actor.session, pause: 2 }, 60_000);
  }
  for (let tries = 0; actors.some(({ pumping }) => !pumping) && tries < 500; tries++) await sleep(10);
  return actors;
}

/** Returns the process that owns the store. @param {readonly import('../support/store-attack.mjs').Actor[]} actors */
async function ownerAmong(actors) {
  for (const actor of actors) {
    if (actor.ended) continue;
    const { ok } = await actor.do('owner', {}, 5000).catch(() => ({}));
    if (ok?.here === true) return actor;
  }
  return undefined;
}

/** Asserts that every running process appends a new value within the time of a takeover. */
async function assertContinues(actors, since) {
  const running = actors.filter(({ ended }) => !ended);
  const before = running.map(({ acked }) => acked.length);
  for (;;) {
    if (running.every(({ acked }, n) => acked.length > (before[n] ?? 0))) return;
    expect(
      Date.now() - since < TAKEOVER_MS,
      'all processes to continue within 2 s',
      running.map(({ acked, crash, pid }, n) => ({ pid, crash, more: acked.length - (before[n] ?? 0) })),
    );
    await sleep(10);
  }
}

/** Asserts that the acknowledged values of each process are stored once and in order. */
async function assertPumped(fixture, actors) {
  const ackedCounts = new Map(actors.map(({ session, acked }) => [session, (acked.at(-1)?.acked ?? -1) + 1]));
  for (const actor of actors) await actor.kill();
  const reader = await fixture.actor();
  const { damage } = await reader.must('open', { path: fixture.path });
  expect(damage.length === 0, 'a store without damage', damage);
  for (const [session, count] of ackedCounts) {
    const values = await reader.must('values', { session });
    expect(
      values.every((value, n) => value === `${session}-${n}`),
      `the values of ${session} in their order, each once`,
      values.slice(-5),
    );
    expect(values.length >= count, `${count} acknowledged values of ${session}`, values.length);
  }
  await reader.kill();
}

/** Owners are killed one after another, at random moments. */
async function killOwners(fixture, count, kills) {
  const actors = await startWriters(fixture, count);
  for (let n = 0; n < kills; n++) {
    await sleep(20 + fixture.random() * 120);
    const owner = await ownerAmong(actors);
    expect(owner !== undefined, 'an owner', 'none');
    await owner.kill();
    await assertContinues(actors, Date.now());
  }
  await assertPumped(fixture, actors);
}

/** The owner is stopped while other processes wait for it, and then killed. */
async function stoppedAndKilled(fixture, ms) {
  const actors = await startWriters(fixture, 3);
  const owner = await ownerAmong(actors);
  owner.signalled('SIGSTOP');
  await sleep(ms);
  await owner.kill();
  await assertContinues(actors, Date.now());
  await assertPumped(fixture, actors);
}

/** All processes continue after one is stopped for less than the timeouts. */
async function stoppedShortly(fixture, role, ms) {
  const actors = await startWriters(fixture, 3);
  const owner = await ownerAmong(actors);
  const target = role === 'owner' ? owner : actors.find((actor) => actor !== owner);
  target.signalled('SIGSTOP');
  await sleep(ms);
  target.signalled('SIGCONT');
  await assertContinues(actors, Date.now());
  await assertPumped(fixture, actors);
}

/**
 * The files of a stopped owner are removed and another process opens the store. After SIGCONT, the first cannot write.
 */
async function deposed(fixture, how) {
  const { path } = fixture;
  const first = await fixture.actor();
  const { fence, next } = await first.fill(path);
  if (how.includes('dropped')) await first.must('readStoreFiles', { path });
  const blocking = how.includes('queued') ? first.do('blockRepeatedly', { ms: 300, gap: 0, times: 1 }) : undefined;
  await blocking;
  const queued = how.includes('queued') ? first.do('append', { session: 'a', fence, first: next }, 30_000) : undefined;
  first.signalled('SIGSTOP');
  await sleep(50);
  for (const name of ['.owner', '.lock', '.sock']) if (how.includes(name)) rmSync(path + name, { force: true });
  const second = await fixture.actor();
  const opened = await second.do('open', { path });
  const acked = new Map([['a', next]]);
  if (opened.ok !== undefined) {
    const claim = await second.must('claim', { session: 'a' });
    await second.must('append', { session: 'a', fence: claim.fence, first: claim.next, value: 'second' });
    acked.set('a', claim.next + 1);
  } else expectFault(opened, ['STORE_OWNED']);
  first.signalled('SIGCONT');
  const answer = (await queued) ?? (await first.do('append', { session: 'a', fence, first: next }, 30_000));
  if (opened.ok !== undefined) expect(!('ok' in answer), 'the former owner to write nothing', answer);
  else if ('ok' in answer) acked.set('a', next + 1);
  if (answer.fault !== undefined)
    expectFault(answer, ['OWNERSHIP_LOST', 'STALE_WRITER', 'STORE_MISSING', 'STORE_OWNED', 'STORE_CLOSED']);
  const values = opened.ok === undefined ? undefined : await second.must('values', { session: 'a' });
  if (values !== undefined)
    expect(values.at(-1) === 'second' || values.includes('second'), 'the value of the second process', values);
  await first.kill();
  await second.kill();
  await assertAckedStored(fixture, path, acked);
}

/** The owner closes the store while other processes open it and write. */
async function closeWhileOthersOpen(fixture, joiners, round) {
  const { path } = fixture;
  const owner = await fixture.actor();
  const others = await Promise.all(Array.from({ length: joiners }, () => fixture.actor()));
  const { fence, next } = await owner.fill(path, 'own', 1);
  const last = owner.do('append', { session: 'own', fence, first: next });
  const opening = others.map(async (other, n) => {
    await sleep(fixture.random() * 8 * round);
    await other.must('open', { path });
    const claim = await other.must('claim', { session: `j${n}` });
    await other.must('append', { session: `j${n}`, fence: claim.fence, first: claim.next });
    return [`j${n}`, claim.next + 1];
  });
  await sleep(fixture.random() * 8 * round);
  await owner.must('close');
  const acked = new Map(await Promise.all(opening));
  acked.set('own', 'ok' in (await last) ? next + 1 : next);
  const owners = await Promise.all(others.map((other) => other.must('owner')));
  expect(owners.filter(({ here }) => here).length === 1, 'one owner', owners);
  for (const other of others) await other.kill();
  await assertAckedStored(fixture, path, acked);
}

/** The owner ends by a signal, or because its input ends. */
async function ownerEnds(fixture, how) {
  const actors = await startWriters(fixture, 3);
  const owner = await ownerAmong(actors);
  if (how === 'stdin') owner.child.stdin.end();
  else owner.signalled(how);
  await owner.closed;
  await assertContinues(actors, Date.now());
  Object.assign(owner, { code: 0 });
  await assertPumped(fixture, actors);
}

/** Leases survive the end of the owner, and requests reach their holders. */
async function leasesSurvive(fixture, holders) {
  const { path } = fixture;
  const owner = await fixture.actor();
  await owner.must('open', { path });
  const actors = await Promise.all(Array.from({ length: holders }, () => fixture.actor()));
  for (const [n, actor] of actors.entries()) {
    await actor.must('open', { path });
    expect(await actor.must('acquire', { session: `h${n}`, pieces: 3 }), 'a lease', 'none');
  }
  await owner.kill();
  const at = Date.now();
  for (const [n] of actors.entries()) {
    const requester = actors[(n + 1) % actors.length];
    expect(
      (await requester.must('acquire', { session: `h${n}` })) === (holders === 1),
      'a session to stay with its holder',
      n,
    );
    if (holders === 1) continue;
    const reply = await requester.must('ask', { session: `h${n}`, request: { n } });
    expect(
      reply.status === 'answered' && reply.value.from === actors[n].pid && reply.pieces === 3,
      'an answer from the holder',
      reply,
    );
  }
  const took = Date.now() - at;
  expect(took < TAKEOVER_MS, 'the leases to be restored within 2 s', took);
  const list = await actors[0].must('holdings');
  expect(list.length === holders, `${holders} leases`, list);
}

/** The lease of an ended holder is released; a request to a stopped holder throws SESSION_BUSY. */
async function holderEnds(fixture, how) {
  const { path } = fixture;
  const owner = await fixture.actor();
  await owner.must('open', { path });
  const [holder, requester] = [await fixture.actor(), await fixture.actor()];
  await holder.must('open', { path });
  await requester.must('open', { path });
  await holder.must('acquire', { session: 'h' });
  if (how === 'stopped') {
    holder.signalled('SIGSTOP');
    const answer = await requester.do('ask', { session: 'h' });
    expectFault(answer, ['SESSION_BUSY']);
    expect(
      answer.fault.data?.pid === holder.pid && /stopped/.test(answer.fault.message),
      'the pid and a message that the process is stopped',
      answer.fault,
    );
    return;
  }
  if (how === 'closed') await holder.must('close');
  else await holder.kill();
  const at = Date.now();
  while (!(await requester.must('acquire', { session: 'h' }))) {
    expect(Date.now() - at < TAKEOVER_MS, 'the lease to be released within 2 s', Date.now() - at);
    await sleep(20);
  }
}

/** The owner blocks its event loop repeatedly: a client opens the store or throws STORE_OWNED in time. */
async function blockedOwner(fixture, ms, times) {
  const { path } = fixture;
  const owner = await fixture.actor();
  await owner.fill(path);
  await owner.must('blockRepeatedly', { ms, gap: 30, times });
  await sleep(40);
  const client = await fixture.actor();
  const answer = await client.do('open', { path });
  if (answer.fault !== undefined) {
    expectFault(answer, ['STORE_OWNED']);
    expect(answer.fault.data?.pid === owner.pid, 'the pid of the owner', answer.fault);
  }
}

export function cases() {
  const all = [];
  const add = (id, run, more = {}) => all.push({ id: `takeover.${id}`, run, ...more });
  for (const count of [2, 3, 5])
    for (let round = 1; round <= 4; round++)
      add(`chain.${count}.${round}`, (fixture) => killOwners(fixture, count, count - 1));
  add('chain.9.1', (fixture) => killOwners(fixture, 9, 8));
  for (const ms of [0, 20, 100, 500, 2000, 4500])
    add(`stopped-and-killed.${ms}`, (fixture) => stoppedAndKilled(fixture, ms), { waits: true });
  for (const role of ['owner', 'client'])
    for (const ms of [50, 1000, 4000])
      add(`stopped-shortly.${role}.${ms}`, (fixture) => stoppedShortly(fixture, role, ms), { waits: true });
  for (const files of ['', '.owner', '.owner.lock', '.owner.lock.sock', '.lock', '.owner.sock']) {
    for (const more of ['', '-dropped', '-queued', '-dropped-queued'])
      add(`deposed${files}${more}`, (fixture) => deposed(fixture, `${files}${more}`), { waits: true });
  }
  for (const joiners of [1, 2, 4])
    for (let round = 1; round <= 4; round++)
      add(`closing.${joiners}.${round}`, (fixture) => closeWhileOthersOpen(fixture, joiners, round));
  for (const how of ['stdin', 'SIGTERM', 'SIGINT', 'SIGHUP', 'SIGQUIT', 'SIGABRT', 'SIGSEGV', 'SIGUSR2'])
    add(`ends.${how}`, (fixture) => ownerEnds(fixture, how));
  for (const holders of [1, 2, 4]) add(`leases.${holders}`, (fixture) => leasesSurvive(fixture, holders));
  for (const how of ['killed', 'closed', 'stopped'])
    add(`holder.${how}`, (fixture) => holderEnds(fixture, how), { waits: true });
  for (const [ms, times] of [
    [1000, 4],
    [4000, 4],
    [6000, 4],
    [9500, 2],
  ])
    add(`blocked.${ms}`, (fixture) => blockedOwner(fixture, ms, times), { waits: true });
  return all;
}
