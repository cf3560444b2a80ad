import { createWorkflow } from '@mastra/core/workflows';
import { z } from 'zod';

const greet = createWorkflow({
  id: 'greet',
  inputSchema: z.object({ name: z.string() }),
  outputSchema: z.object({ text: z.string() }),
})
  .map(async ({ inputData }) => ({ text: `Hello ${inputData.name}` }))
  .commit();

const run = await greet.createRunAsync();
const result = await run.start({ inputData: { name: 'Ada' } });
if (result.status === 'success') console.log(result.result.text);
