import { Mastra } from '@mastra/core/mastra';
import { createStep, createWorkflow } from '@mastra/core/workflows';
import { LibSQLStore } from '@mastra/libsql';
import { z } from 'zod';
import { reserve, ship } from '../shared/services.js';

const payment = createStep({
  id: 'payment',
  inputSchema: z.object({ sku: z.string() }),
  resumeSchema: z.object({ amount: z.number() }),
  outputSchema: z.object({ sku: z.string(), amount: z.number() }),
  execute: async ({ inputData, resumeData, suspend }) =>
    resumeData ? { ...inputData, ...resumeData } : await suspend({}),
});
const reserveStock = createStep({
  id: 'reserve',
  inputSchema: z.object({ sku: z.string(), amount: z.number() }),
  outputSchema: z.object({ reservation: z.string() }),
  retries: 3,
  execute: ({ inputData: { sku, amount } }) => reserve(sku, amount),
});
const bookCourier = createStep({
  id: 'ship',
  inputSchema: z.object({ sku: z.string(), amount: z.number() }),
  outputSchema: z.object({ parcel: z.string() }),
  execute: ({ inputData: { sku } }) => ship(sku),
});
const order = createWorkflow({
  id: 'order',
  inputSchema: z.object({ sku: z.string() }),
  outputSchema: z.object({
    reserve: z.object({ reservation: z.string() }),
    ship: z.object({ parcel: z.string() }),
  }),
})
  .sleep(1000)
  .then(payment)
  .parallel([reserveStock, bookCourier])
  .commit();
const mastra = new Mastra({ workflows: { order }, storage: new LibSQLStore({ url: 'file:mastra.db' }) });

const run = await mastra.getWorkflow('order').createRunAsync();
await run.start({ inputData: { sku: 'lamp' } });
const result = await run.resume({ step: 'payment', resumeData: { amount: 5 } });
if (result.status === 'success') console.log(result.result.reserve.reservation, result.result.ship.parcel);
