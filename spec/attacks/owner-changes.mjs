// Operations of a process while owners change: appends in flight, long reads, large values, leases, closing and exit.

import { createHash } from 'node:crypto';
import { expect, sleep, within } from '../support/store-attack.mjs';
import { assertAckedStored } from './owner-files.mjs';

/** Appends that are in flight when the owner ends are written once and in order. */
async function appendsInFlight(fixture, { width, kills, closes }) {
  const { path } = fixture;
  const owners = await Promise.all(Array.from({ length: kills }, () => fixture.actor()));
  for (const owner of owners) await owner.must('open', { path });
  const writer = await fixture.actor();
  await writer.must('open', { path });
  const count = 600;
  const appending = writer.must('burst', { session: 'burst', count, width }, 30_000);
  for (const owner of owners) {
    await sleep(30 + fixture.random() * 60);
    if (closes) await owner.must('close');
    else await owner.kill();
  }
  const errors = await appending;
  expect(errors.length === 0, 'every append to be acknowledged', errors);
  const values = await writer.must('values', { session: 'burst' });
  const isComplete = values.length === count && values.every((value, n) => value === `burst-${n}`);
  expect(isComplete, 'each append once and in order', { length: values.length, last: values.slice(-3) });
  await writer.kill();
  await assertAckedStored(fixture, path, new Map([['burst', count]]));
}

/** A client reads a long session completely while the owner changes or is stopped. */
async function readLongSession(fixture, how) {
  const { path } = fixture;
  const [owner, reader] = [await fixture.actor(), await fixture.actor()];
  await owner.must('open', { path });
  await owner.must('burst', { session: 'long', count: 3000, width: 500 }, 30_000);
  await reader.must('open', { path });
  const reading = reader.must('readSlowly', { session: 'long', ms: 20 }, 30_000);
  while (reader.acked.length < 2) await sleep(5);
  if (how === 'killed') await owner.kill();
  else if (how === 'closed') await owner.must('close');
  else {
    owner.signalled('SIGSTOP');
    await sleep(1500);
    owner.signalled('SIGCONT');
  }
  const { count, inOrder } = await reading;
  expect(count === 3000 && inOrder, '3000 values in order', { count, inOrder });
}

/** A client puts a blob under one owner and appends under another: the blob is stored. */
async function putLargeValue(fixture, how) {
  const { path } = fixture;
  const text = JSON.stringify('large '.repeat(50_000));
  const digest = createHash('sha256').update(text).digest('base64url');
  const [owner, client] = [await fixture.actor(), await fixture.actor()];
  await owner.must('open', { path });
  await client.must('open', { path });
  const { fence } = await client.must('claim', { session: 'a' });
  await client.must('put', { session: 'a', digest, text });
  if (how === 'killed') await owner.kill();
  if (how === 'closed') await owner.must('close');
  const third = how === 'third' ? await fixture.actor() : undefined;
  if (third !== undefined) {
    await third.must('open', { path });
    await owner.kill();
  }
  await client.must('append', { session: 'a', fence, first: 0 });
  await client.kill();
  await third?.kill();
  const reader = await fixture.actor();
  await reader.must('open', { path });
  expect((await reader.must('get', { session: 'a', digest })) === text, 'the large value', 'another value or none');
}

/** The owner is killed while a lease holder is stopped: other processes acquire leases of other sessions in time. */
async function stoppedHolder(fixture) {
  const { path } = fixture;
  const [owner, holder, other] = [await fixture.actor(), await fixture.actor(), await fixture.actor()];
  for (const actor of [owner, holder, other]) await actor.must('open', { path });
  await holder.must('acquire', { session: 'h' });
  holder.signalled('SIGSTOP');
  await owner.kill();
  const at = Date.now();
  expect(await other.must('acquire', { session: 'fresh' }), 'a lease of another session', 'none');
  const took = Date.now() - at;
  expect(took < 2000, 'a lease of another session within 2 s', `${took} ms`);
}

/** A stopped holder continues after its lease was given to another process: it cannot write to the session. */
async function lateHolder(fixture) {
  const { path } = fixture;
  const [owner, holder, other] = [await fixture.actor(), await fixture.actor(), await fixture.actor()];
  for (const actor of [owner, holder, other]) await actor.must('open', { path });
  await holder.must('acquire', { session: 'h' });
  const first = await holder.must('claim', { session: 'h' });
  await holder.must('append', { session: 'h', fence: first.fence, first: 0 });
  holder.signalled('SIGSTOP');
  await owner.kill();
  const until = Date.now() + 10_000;
  while (!(await other.must('acquire', { session: 'h' }))) {
    expect(Date.now() < until, 'the lease to be given to another process', 'it was not');
    await sleep(50);
  }
  const second = await other.must('claim', { session: 'h' });
  holder.signalled('SIGCONT');
  const answer = await holder.do('append', { session: 'h', fence: first.fence, first: 1, value: 'late' });
  expect(answer.fault?.code === 'STALE_WRITER', 'STALE_WRITER', answer);
  await other.must('append', { session: 'h', fence: second.fence, first: 1, value: 'new' });
  expect(
    (await other.must('values', { session: 'h' })).join() === 'v0,new',
    'the values of the new holder',
    'other values',
  );
}

/** A store does not keep its process alive, neither in an owner nor in a client. */
async function endsWhenIdle(fixture, role) {
  const { path } = fixture;
  const actor = await fixture.actor();
  if (role !== 'owner') {
    const owner = await fixture.actor();
    await owner.must('open', { path });
    await actor.must('open', { path });
    if (role === 'client-of-stopped') owner.signalled('SIGSTOP');
    if (role === 'client-of-killed') await owner.kill();
  } else await actor.must('open', { path });
  await actor.do('closeInput').catch(() => undefined);
  await within(actor.closed, 4000, 'the process to end by itself');
}

/** Opening and closing a store repeatedly does not leak descriptors. */
async function descriptorLeak(fixture, role) {
  const { path } = fixture;
  const actor = await fixture.actor();
  if (role === 'client') await (await fixture.actor()).must('open', { path });
  const before = await actor.must('reopen', { path, times: 5 });
  const after = await actor.must('reopen', { path, times: 60 }, 40_000);
  expect(after - before < 40, 'descriptors not to leak', { before, after });
}

/** A client does not leak descriptors over many changes of the owner. It may become the owner itself, which needs more. */
async function manyOwners(fixture) {
  const { path } = fixture;
  const client = await fixture.actor();
  let owner = await fixture.actor();
  await owner.must('open', { path });
  await client.must('open', { path });
  const counts = [];
  for (let n = 0; n < 24; n++) {
    const next = await fixture.actor();
    await next.must('open', { path });
    await owner.kill();
    await client.must('list');
    owner = next;
    counts.push(await client.must('descriptors'));
  }
  const grows = counts.filter((count, n) => n > 0 && count > counts[n - 1]).length;
  expect(grows <= 2, 'descriptors not to leak', { counts });
}

/** A client closes its store in time while the owner is stopped or has ended, or a request is in flight. */
async function clientCloses(fixture, state) {
  const { path } = fixture;
  const [owner, client] = [await fixture.actor(), await fixture.actor()];
  await owner.must('open', { path });
  await client.must('open', { path });
  if (state === 'owner-stopped') owner.signalled('SIGSTOP');
  if (state === 'owner-killed') owner.child.kill('SIGKILL');
  if (state === 'owner-closed') await owner.must('close');
  const list = state === 'under-way' ? client.do('list') : undefined;
  const at = Date.now();
  await client.must('close');
  expect(Date.now() - at < 3000, 'a close within 3 s', Date.now() - at);
  await list;
  const answer = await client.do('list');
  expect(answer.fault?.code === 'STORE_CLOSED', 'STORE_CLOSED', answer);
}

export function cases() {
  const all = [];
  const add = (id, run, more = {}) => all.push({ id: `takeover.${id}`, run, ...more });
  for (const width of [1, 10, 100, 600]) {
    for (const kills of [1, 3]) {
      add(`burst.${width}.killed-${kills}`, (fixture) => appendsInFlight(fixture, { width, kills, closes: false }));
      add(`burst.${width}.closed-${kills}`, (fixture) => appendsInFlight(fixture, { width, kills, closes: true }));
    }
  }
  for (const how of ['killed', 'closed', 'stopped']) add(`reading.${how}`, (fixture) => readLongSession(fixture, how));
  for (const how of ['untouched', 'killed', 'closed', 'third'])
    add(`large-value.${how}`, (fixture) => putLargeValue(fixture, how));
  add('leases.stopped-holder', stoppedHolder, { waits: true });
  add('leases.late-holder', lateHolder, { waits: true });
  for (const role of ['owner', 'client', 'client-of-stopped', 'client-of-killed'])
    add(`rests.${role}`, (fixture) => endsWhenIdle(fixture, role), { waits: true });
  for (const role of ['owner', 'client'])
    add(`descriptors.${role}`, (fixture) => descriptorLeak(fixture, role), { waits: true });
  add('descriptors.many-owners', manyOwners, { waits: true });
  for (const state of ['owner-stopped', 'owner-killed', 'owner-closed', 'under-way'])
    add(`client-closes.${state}`, (fixture) => clientCloses(fixture, state), { waits: true });
  return all;
}
