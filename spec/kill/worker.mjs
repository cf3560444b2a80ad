// The process that is killed: it finishes what it finds unfinished and starts new sessions until it is told to finish.
// Everything it does outside goes to the sink; what it was told is done, it acknowledges there.

import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { Session, systemClock, systemIds } from 'rondo';
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

/** Time that runs faster than the world's, and on across restarts: programs sleep for minutes.
 *  @type {import('rondo').Clock} */
const clock = {
  now: () => (systemClock.now() - start) * SPEED,
  elapsed: () => systemClock.elapsed() * SPEED,
  sleep: (ms, signal) => systemClock.sleep(ms / SPEED, signal),
};

const store = await openSqlite(join(folder, 'journal.db'));
console.log('ready');

/** @param {readonly import('rondo/testing').ProgramStep[]} steps @param {string} name @returns {number} */
function sizeOf(steps, name) {
  for (const step of steps) {
    if (step.op === 'effect' && step.name === name) return step.fails ? -1 : step.size;
    const inside = step.op === 'call' ? [step.steps] : step.op === 'all' || step.op === 'race' ? step.branches : [];
    for (const branch of inside) {
      const size = sizeOf(branch, name);
      if (size !== 0) return size;
    }
  }
  return 0;
}

/** @param {Session} session @param {import('rondo').PendingStep} item @param {readonly import('rondo/testing').ProgramStep[]} steps */
async function answer(session, item, steps) {
  if (item.kind === 'signal') await session.signal({ id: `for ${item.name}`, name: item.name, value: item.name });
  if (item.kind !== 'doubt') return;
  const happened = await wasReported(sink, `once ${session.name} ${item.name}`);
  const size = sizeOf(steps, item.name);
  if (!happened) await session.resolveEffect(item.key, 'retry', 'auditor');
  else if (size < 0) await session.resolveEffect(item.key, 'fail', 'auditor');
  else await session.resolveEffect(item.key, 'supply', 'auditor', { value: programEffectResult(item.name, size) });
}

/** @param {number} number */
async function finish(number) {
  const name = `s${number}`;
  const session = await Session.open(name, { store, clock, ids: systemIds });
  const steps = randomProgram(seededRandom(number), 14);
  const loop = programLoop('main', steps, {
    perform: (effect, safety, key) =>
      reportEffect(sink, {
        key: `${safety} ${name} ${effect}`,
        kind: 'effect',
        data: { safety, session: name, effect, key },
      }),
    cancel: () => session.cancel('t1', 'the program says so'),
  });
  for (;;) {
    const outcome = await session.run('t1', loop, null);
    if (outcome.status !== 'paused') {
      const data = { session: name, outcome: JSON.stringify(outcome) };
      return reportEffect(sink, { key: `ack ${name}`, kind: 'ack', data });
    }
    for (const item of outcome.pending) await answer(session, item, steps);
  }
}

const begun = (await store.journal.list()).length;
let next = 1;
const finishing = () => existsSync(join(folder, 'finish'));
const lane = async () => {
  while (next <= begun || !finishing()) await finish(next++);
};
await Promise.all(Array.from({ length: 16 }, lane));
await store.close();
