import { defineLoop } from 'rondo';
import { z } from 'zod';

/** A typed loop: its input and its output are validated, and every step is recorded. */
export const greet = defineLoop({
  id: 'greet',
  description: 'Greets a person.',
  input: z.object({ name: z.string().min(1) }),
  output: z.object({ text: z.string() }),
  run: async ({ name }) => ({ text: `Hello ${name}!` }),
});
