/**
 * Three loops in code: a prompt, a tool, and a composite that calls both. Schemas are zod's; types come from them, so
 * the compiler knows what each call takes and returns, and the runtime checks the same at both ends.
 */
import { fileURLToPath } from 'node:url';
import { defineLoop } from 'rondo';
import { z } from 'zod';

const topic = z.enum(['billing', 'delivery', 'other']);

/** A prompt: its template is filled from the input, the reply is read against the output. */
export const classify = defineLoop({
  id: 'classify',
  input: z.object({ message: z.string() }),
  output: z.object({ topic, urgent: z.boolean() }),
  prompt: 'Which topic is this message about, and is it urgent?\n\n{{message}}',
  // In code there is no definition's directory for a relative path to start at.
  backend: { id: 'scripted', model: fileURLToPath(new URL('triage.script.json', import.meta.url)) },
});

/** A tool: one effect, recorded, with a declared safety. */
export const onDuty = defineLoop({
  id: 'on-duty',
  input: z.object({ topic }),
  output: z.object({ team: z.string() }),
  safety: 'pure',
  tool: ({ topic: about }, { log }) => {
    log('info', `looking for who does ${about}`);
    const teams = { billing: 'accounts', delivery: 'dispatch', other: 'front desk' };
    return { team: teams[about] };
  },
});

/** A composite: straight-line code over its scope. Each step is recorded, so a run that was killed goes on from there. */
export const triage = defineLoop({
  id: 'triage',
  version: '1.2.0',
  description: 'Says who should look at a message, and how soon.',
  input: z.object({ message: z.string().min(1), from: z.string().default('a customer') }),
  output: z.object({ team: z.string(), topic, note: z.string() }),
  body: async ({ message, from }, scope) => {
    const { topic: about, urgent } = await scope.call(classify, { message });
    const { team } = await scope.call(onDuty, { topic: about });
    if (urgent) await scope.log('warn', `${team} must look at this today`);
    await scope.record('desk.triaged', () => ({ team, urgent }));
    return { team, topic: about, note: `${from} wrote about ${about}${urgent ? ', urgently' : ''}` };
  },
});
