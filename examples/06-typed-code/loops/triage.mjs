/**
 * Three loops in code: a prompt, a tool, and a composite that calls both. The compiler infers the types of inputs and
 * outputs from their zod schemas; the runtime validates with the same schemas.
 */
import { fileURLToPath } from 'node:url';
import { defineLoop } from 'rondo';
import { z } from 'zod';

const topic = z.enum(['billing', 'delivery', 'other']);

/** A prompt: the template is filled from the input, and the reply is parsed with the output schema. */
export const classify = defineLoop({
  id: 'classify',
  input: z.object({ message: z.string() }),
  output: z.object({ topic, urgent: z.boolean() }),
  prompt: 'Which topic is this message about, and is it urgent?\n\n{{message}}',
  // The path is absolute, because a loop in code has no directory of its own for relative paths.
  model: { id: 'scripted', model: fileURLToPath(new URL('triage.script.json', import.meta.url)) },
});

/** A tool: one recorded effect with a declared safety. */
export const onDuty = defineLoop({
  id: 'on-duty',
  input: z.object({ topic }),
  output: z.object({ team: z.string() }),
  safety: 'pure',
  tool: ({ topic: about }, { log }) => {
    log('info', `looking up the team for ${about}`);
    const teams = { billing: 'accounts', delivery: 'dispatch', other: 'front desk' };
    return { team: teams[about] };
  },
});

/** A composite in plain code. Each step is recorded, so a killed turn continues after its last recorded step. */
export const triage = defineLoop({
  id: 'triage',
  version: '1.2.0',
  description: 'Assigns a message to a team.',
  input: z.object({ message: z.string().min(1), from: z.string().default('a customer') }),
  output: z.object({ team: z.string(), topic, note: z.string() }),
  run: async ({ message, from }, scope) => {
    const { topic: about, urgent } = await scope.call(classify, { message });
    const { team } = await scope.call(onDuty, { topic: about });
    if (urgent) await scope.log('warn', `${team} must look at this today`);
    await scope.record('desk.triaged', () => ({ team, urgent }));
    return { team, topic: about, note: `${from} wrote about ${about}${urgent ? ', urgently' : ''}` };
  },
});
