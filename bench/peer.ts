/** A process that shares a store, started by `shared`: runs the turns it is told to, and reports how many steps it took. */
import { setTimeout } from 'node:timers/promises';
import { openSqlite } from '../src/adapters/sqlite/index.js';
import { defineLoop, Host, Registry, systemClock, systemIds } from '../src/index.js';
import { effect } from './work.js';

/** So many turns side by side, each followed by another one until the time is over; a turn is so many `once` effects in sequence. */
export interface Job {
  readonly turns: number;
  readonly steps: number;
  readonly seconds: number;
}

const schema = { type: 'object', properties: { steps: { type: 'number' } }, required: ['steps'] } as const;

/** Steps that this process has taken. */
let taken = 0;

const effects = defineLoop({
  id: 'effects',
  input: schema,
  output: schema,
  body: async (input, scope) => {
    const one = effect('once');
    for (let i = 0; i < (input as Job).steps; i++) {
      await scope.effect(one);
      taken += 1;
    }
    return input;
  },
});

/** Durable steps a second, counted while all turns run. */
async function perform(host: Host, { turns, steps, seconds }: Job): Promise<number> {
  let isOver = false;
  const lane = async (): Promise<void> => {
    while (!isOver) {
      const { status } = await host.run({ loop: effects, input: { steps } as never });
      if (status !== 'ok') throw new Error(`A turn ended with ${status}.`);
    }
  };
  const [before, start] = [taken, performance.now()];
  const lanes = Array.from({ length: turns }, lane);
  await setTimeout(seconds * 1000);
  const rate = ((taken - before) / (performance.now() - start)) * 1000;
  isOver = true;
  await Promise.all(lanes);
  return rate;
}

const [file = ''] = process.argv.slice(2);
const registry = new Registry();
registry.add(effects);
const host = new Host({ store: await openSqlite(file), clock: systemClock, ids: systemIds, registry });
process.on('message', async (job: Job) => process.send?.(await perform(host, job)));
process.on('disconnect', () => process.exit());
process.send?.('ready');
