import { defineLoop } from 'rondo';
import { z } from 'zod';

const greet = defineLoop({
  id: 'greet',
  input: z.object({ name: z.string() }),
  output: z.object({ text: z.string() }),
  run: ({ name }) => ({ text: `Hello ${name}` }),
});

console.log((await greet({ name: 'Ada' })).text);
