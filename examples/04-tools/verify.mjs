// Runs one order through a tool of each kind. The warehouse, a server in this process, records its requests.

import { cpSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { runExample } from '../run-example.mjs';
import { openWarehouse } from './warehouse.mjs';

await runExample(
  'Tools: builtin, module, http, exec',
  import.meta.url,
  async ({ rondo, loops: originalLoops, folder, check }) => {
    const warehouse = await openWarehouse(0);
    try {
      // The definition names a fixed port, which may be in use. This copy names the port of the warehouse.
      const loops = join(folder, 'loops');
      cpSync(originalLoops, loops, { recursive: true });
      const file = join(loops, 'reserve.json');
      writeFileSync(file, readFileSync(file, 'utf8').replace(':8787/', `:${warehouse.port}/`));

      const args = ['--loops', loops, '--trust', loops, '--key', 'order-17'];
      const order = ['run', 'take-order', '--input', '{"item":"lamp","count":2}', ...args];
      const first = await rondo(...order, '--session', 'orders', '--watch');
      const { noted, total, shelf, label } = JSON.parse(first.stdout);
      check('the exit code is 0', first.code === 0);
      check('builtin, pure: the order is returned unchanged', noted.item === 'lamp' && noted.count === 2);
      check('module, idempotent: two lamps cost 80.00', total === 8000);
      check('http, keyed: a shelf is reserved', shelf === 'shelf 1');
      check('exec, once: a label is printed', /^L-\d+$/.test(label));

      const { requests } = warehouse;
      check(
        'the warehouse answers 503, so the request is retried',
        requests.map(({ status }) => status).join() === '503,200',
      );
      check(
        'the retry has the same key, so there is one reservation',
        new Set(requests.map(({ key }) => key)).size === 1,
      );

      const tree = (await rondo('trace', 'orders')).stdout;
      check('the trace shows the second attempt', /reserve@1\.0\.0[\s\S]*?retry 1 after .*TOOL_FAILED/.test(tree));

      const second = await rondo(...order, '--session', 'orders');
      check(
        'the same key identifies the same turn: no tool is called',
        second.stdout === first.stdout && requests.length === 2,
      );
    } finally {
      warehouse.close();
    }
  },
);
