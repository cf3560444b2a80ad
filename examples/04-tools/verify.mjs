// One order goes through a tool of each kind; the warehouse, a server of this process, tells what it was asked.

import { cpSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { tell } from '../run-example.mjs';
import { openWarehouse } from './warehouse.mjs';

await tell('Tools: builtin, module, http, exec', import.meta.url, async ({ rondo, loops: given, folder, holds }) => {
  const warehouse = await openWarehouse(0);
  try {
    // The address stands in the definition, and any port may be taken: this copy has a free one.
    const loops = join(folder, 'loops');
    cpSync(given, loops, { recursive: true });
    const file = join(loops, 'reserve.json');
    writeFileSync(file, readFileSync(file, 'utf8').replace(':8787/', `:${warehouse.port}/`));

    const args = ['--loops', loops, '--trust', loops, '--key', 'order-17'];
    const order = ['run', 'take-order', '--input', '{"item":"lamp","count":2}', ...args];
    const taken = await rondo(...order, '--session', 'desk', '--watch');
    const { noted, total, shelf, label } = JSON.parse(taken.stdout);
    holds('it ends with exit code 0', taken.code === 0);
    holds('builtin, pure: the order is noted as it came', noted.item === 'lamp' && noted.count === 2);
    holds('module, idempotent: two lamps cost 80.00', total === 8000);
    holds('http, keyed: a shelf is reserved', shelf === 'shelf 1');
    holds('exec, once: a label is printed', /^L-\d+$/.test(label));

    const { visits } = warehouse;
    holds(
      'the warehouse answered 503, so it was asked again',
      visits.map(({ answered }) => answered).join() === '503,200',
    );
    holds('under the same key, so it reserved once', new Set(visits.map(({ key }) => key)).size === 1);

    const tree = (await rondo('trace', 'desk')).stdout;
    holds('the journal tells of the second attempt', /reserve@1\.0\.0.*\n.*retry 1 after .*TOOL_FAILED/.test(tree));

    const again = await rondo(...order, '--session', 'desk');
    holds('the same key is the same turn: nobody is asked', again.stdout === taken.stdout && visits.length === 2);
  } finally {
    warehouse.close();
  }
});
