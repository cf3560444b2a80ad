// Loops of the server that wait for people or fail: an approval, an effect in doubt, a failure, and an agent.

import { existsSync, writeFileSync } from 'node:fs';
import { defineAgent, defineLoop } from 'rondo';

const TEXT = /** @type {const} */ ({ type: 'string' });
const ANY_OBJECT = /** @type {const} */ ({ type: 'object' });
const WITH_FILE = /** @type {const} */ ({
  type: 'object',
  properties: { file: { type: 'string' } },
  required: ['file'],
});

/** Waits for an approval. */
export const refund = defineLoop({
  id: 'refund',
  input: ANY_OBJECT,
  output: TEXT,
  policy: { approval: 'ask' },
  tool: async () => 'refunded',
});

/** Creates the file and does not end, so that its effect is in doubt once the process is killed. */
export const hang = defineLoop({
  id: 'hang',
  input: WITH_FILE,
  output: TEXT,
  safety: 'once',
  tool: ({ file }) => {
    writeFileSync(file, '');
    return new Promise((resolve) => setTimeout(() => resolve('late'), 600_000));
  },
});

/** Fails until the file exists. */
export const flaky = defineLoop({
  id: 'flaky',
  input: WITH_FILE,
  output: TEXT,
  tool: async ({ file }) => {
    if (!existsSync(file)) throw new Error(`${file} does not exist`);
    return 'done';
  },
});

/** An agent with a model that answers by itself. */
export const helper = defineAgent({ id: 'helper', model: 'mock', instructions: 'Help.' });
