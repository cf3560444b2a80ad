// The worker that is killed: it finishes unfinished sessions and starts new ones until the file `finish` exists.
// It reports every effect and every acknowledged result to the sink. On stdout it writes a byte when the store is open, and
// one for each effect.

import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { Session, systemClock, systemIds } from 'rondo/host';
import { openSqlite } from 'rondo/sqlite';
import {
  programEffectResult,
  programLoop,
  randomProgram,
  reportEffect,
  seededRandom,
  wasReported,
} from 'rondo/testing';

const [folder = '', sink = ''] = process.argv.slice(2);
const SPEED = 50_000;
const start = 1_700_000_000_000;

/** A clock that runs faster than real time and continues across restarts, because programs sleep for minutes.
 *  @type {import('rondo/host').Clock} */
const clock = {
  now: () => (systemClock.now() - start) * SPEED,
  elapsed: () => systemClock.elapsed() * SPEED,
  sleep: (ms, signal) => systemClock.sleep(ms / SPEED, signal),
};

const store = await openSqlite(join(folder, 'journal.db'));
process.stdout.write('.');

/** @typedef {import('rondo/testing').ProgramStep} ProgramStep */

/** @param {readonly ProgramStep[]} steps @param {string} name @returns {ProgramStep & { op: 'effect' } | undefined} */
function findEffect(steps, name) {
  for (const step of steps) {
    if (step.op === 'effect' && step.name === name) return step;
    const branches = step.op === 'call' ? [step.steps] : step.op === 'all' || step.op === 'race' ? step.branches : [];
    for (const branch of branches) {
      const effect = findEffect(branch, name);
      if (effect !== undefined) return effect;
    }
  }
  return undefined;
}

/** @param {Session} session @param {import('rondo/host').PendingStep} item @param {readonly import('rondo/testing').ProgramStep[]} steps */
async function settle(session, item, steps) {
  if (item.kind === 'signal') await session.signal({ id: `for ${item.name}`, name: item.name, value: item.name });
  if (item.kind !== 'doubt') return;
  const wasPerformed = await wasReported(sink, `once ${session.name} ${item.name}`);
  const { size = 1, fails = false, form } = findEffect(steps, item.name) ?? {};
  if (!wasPerformed) await session.resolveEffect(item.key, 'retry', 'auditor');
  else if (fails) await session.resolveEffect(item.key, 'fail', 'auditor');
  else {
    const value = programEffectResult(item.name, size, form);
    await session.resolveEffect(item.key, 'supply', 'auditor', { value });
  }
}

/** @param {number} number */
async function finish(number) {
  const name = `s${number}`;
  const session = await Session.open(name, { store, clock, ids: systemIds });
  const steps = randomProgram(seededRandom(number), 14);
  const loop = programLoop('main', steps, {
    perform: (effect, safety, key) => {
      process.stdout.write('.');
      const data = { safety, session: name, effect, key };
      return reportEffect(sink, { key: `${safety} ${name} ${effect}`, kind: 'effect', data });
    },
    cancel: () => session.cancel('t1', 'requested by the program'),
  });
  for (;;) {
    const outcome = await session.run('t1', loop, null);
    if (outcome.status !== 'paused') {
      const data = { session: name, outcome: JSON.stringify(outcome) };
      return reportEffect(sink, { key: `ack ${name}`, kind: 'ack', data });
    }
    for (const item of outcome.pending) await settle(session, item, steps);
  }
}

const existing = (await store.journal.list()).length;
let next = 1;
const shouldFinish = () => existsSync(join(folder, 'finish'));
const lane = async () => {
  while (next <= existing || !shouldFinish()) await finish(next++);
};
await Promise.all(Array.from({ length: 16 }, lane));
await store.close();
