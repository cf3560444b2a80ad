import { createRondo, defineLoop } from 'rondo';
import { z } from 'zod';

const charge = defineLoop({
  id: 'charge',
  input: z.object({ order: z.string() }),
  output: z.object({ receipt: z.string() }),
  tool: ({ order }) => {
    console.log(`charges order ${order}`);
    process.kill(process.pid, 'SIGKILL'); // in place of a crash
    return { receipt: '' };
  },
});

const [receipt] = process.argv.slice(2);
const rondo = await createRondo();
const turn = await rondo.start(charge, { order: '17' }, { key: 'charge-17' });
const result = await turn.result();
console.log(result.status);
if (result.status === 'paused' && receipt !== undefined) {
  for (const { kind, key } of result.pending)
    if (kind === 'doubt') await rondo.resolve(key, { result: { receipt }, by: 'bob' }); // or { retry: true, by }, { fail: true, by }
  console.log(await turn.output());
}
await rondo.close();
