// A process that shares a store. `shared` starts it, sends jobs, and receives the rate of steps.

import { setTimeout } from 'node:timers/promises';
import { openSqlite } from '../src/adapters/sqlite/index.js';
import { Host, Registry, systemClock, systemIds } from '../src/host-entry.js';
import { defineLoop } from '../src/index.js';
import { effect } from './work.js';

/** Parallel turns that are repeated until the time is over; a turn performs `steps` `once` effects in sequence. */
export interface Job {
  readonly turns: number;
  readonly steps: number;
  readonly seconds: number;
}

const schema = { type: 'object', properties: { steps: { type: 'number' } }, required: ['steps'] } as const;

/** The number of steps of this process. */
let stepCount = 0;

const effects = defineLoop({
  id: 'effects',
  input: schema,
  output: schema,
  run: async (input, scope) => {
    const onceEffect = effect('once');
    for (let i = 0; i < (input as Job).steps; i++) {
      await scope.effect(onceEffect);
      stepCount += 1;
    }
    return input;
  },
});

/** Returns the durable steps per second while all turns run. */
async function runJob(host: Host, { turns, steps, seconds }: Job): Promise<number> {
  let isOver = false;
  const lane = async (): Promise<void> => {
    while (!isOver) {
      const { status } = await host.run({ loop: effects, input: { steps } as never });
      if (status !== 'ok') throw new Error(`A turn ended with ${status}.`);
    }
  };
  const [before, start] = [stepCount, performance.now()];
  const lanes = Array.from({ length: turns }, lane);
  await setTimeout(seconds * 1000);
  const rate = ((stepCount - before) / (performance.now() - start)) * 1000;
  isOver = true;
  await Promise.all(lanes);
  return rate;
}

const [file = ''] = process.argv.slice(2);
const registry = new Registry();
registry.add(effects);
const host = new Host({ store: await openSqlite(file), clock: systemClock, ids: systemIds, registry });
process.on('message', async (job: Job) => process.send?.(await runJob(host, job)));
process.on('disconnect', () => process.exit());
process.send?.('ready');
