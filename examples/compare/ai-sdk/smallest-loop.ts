// The types of the schemas are inferred, but calling `execute` validates neither input nor output.
import { tool } from 'ai';
import { z } from 'zod';

const greet = tool({
  inputSchema: z.object({ name: z.string() }),
  outputSchema: z.object({ text: z.string() }),
  execute: ({ name }) => ({ text: `Hello ${name}` }),
});

const output = await greet.execute?.({ name: 'Ada' }, { toolCallId: 'call-1', messages: [] });
if (output && 'text' in output) console.log(output.text);
