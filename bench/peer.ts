/** A process that shares a store, started by `shared`: runs the turns it is told to, and reports the seconds that they took. */
import { openSqlite } from '../src/adapters/sqlite/index.js';
import { defineLoop, Host, Registry, systemClock, systemIds } from '../src/index.js';
import { effect } from './work.js';

/** Turns that run side by side, each of so many `once` effects in sequence. */
export interface Job {
  readonly turns: number;
  readonly steps: number;
}

const schema = { type: 'object', properties: { steps: { type: 'number' } }, required: ['steps'] } as const;

const effects = defineLoop({
  id: 'effects',
  input: schema,
  output: schema,
  body: async (input, scope) => {
    const one = effect('once');
    for (let i = 0; i < (input as Job).steps; i++) await scope.effect(one);
    return input;
  },
});

async function perform(host: Host, { turns, steps }: Job): Promise<number> {
  const start = process.hrtime.bigint();
  const results = await Promise.all(
    Array.from({ length: turns }, () => host.run({ loop: effects, input: { steps } as never })),
  );
  const seconds = Number(process.hrtime.bigint() - start) / 1e9;
  if (results.some(({ status }) => status !== 'ok')) throw new Error('A turn did not end well.');
  return seconds;
}

const [file = ''] = process.argv.slice(2);
const registry = new Registry();
registry.add(effects);
const host = new Host({ store: await openSqlite(file), clock: systemClock, ids: systemIds, registry });
process.on('message', async (job: Job) => process.send?.(await perform(host, job)));
process.on('disconnect', () => process.exit());
process.send?.('ready');
