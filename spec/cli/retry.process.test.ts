// Retries from the command line, and the place of an error in the code of the user.

import { expect } from 'vitest';
import type { TurnResult } from '../../src/protocol/index.js';
import { Project } from '../support/cli-project.js';
import { verifies } from '../verifies.js';

const library = new URL('../../lib/index.js', import.meta.url);
const LOOPS = `import { existsSync, appendFileSync } from 'node:fs';
import { defineLoop } from ${JSON.stringify(library)};
const anything = { input: true, output: true };
const reserve = defineLoop({ ...anything, id: 'reserve', tool: () => { appendFileSync('reserved', 'x'); return 1; } });
const charge = defineLoop({ ...anything, id: 'charge', tool: () => {
  if (!existsSync('bank')) throw new Error('The bank is down.');
  return 'charged';
} });
export const order = defineLoop({ ...anything, id: 'order', run: async (_, scope) => {
  await scope.call(reserve, null);
  return scope.call(charge, null);
} });
`;

function projectWithLoops(): Project {
  const project = new Project({});
  project.write('loops/order.mjs', LOOPS);
  project.trusted = true;
  return project;
}

verifies('turn.retry', 'rondo retry: a failed turn continues in another process and repeats nothing', async () => {
  const project = projectWithLoops();
  const failed = await project.runProcess(['run', 'order', '--session', 's', '--json']);
  expect(failed.code).toBe(1);
  const { turnId } = JSON.parse(failed.stdout) as TurnResult;
  expect((await project.runProcess(['retry', turnId])).code, 'the bank is still down').toBe(1);
  project.write('bank', '');
  const retried = await project.runProcess(['retry', 's', '--json']);
  expect(retried.code).toBe(0);
  expect(JSON.parse(retried.stdout)).toMatchObject({ turnId, status: 'ok', output: 'charged' });
  expect(project.read('reserved')).toBe('x');
  const again = await project.runProcess(['retry', turnId, '--json']);
  expect(again.code).toBe(1);
  expect(again.stdout).toContain('RETRY_REFUSED');
  expect((await project.run(['retry'])).code).toBe(64);
});

verifies('turn.errors', 'the terminal shows where the code of the user threw, also later', async () => {
  const project = projectWithLoops();
  const failed = await project.runProcess(['run', 'order', '--session', 's', '--json']);
  expect(failed.stderr).toContain('TOOL_FAILED: The bank is down.\nat loops/order.mjs:6:');
  expect(JSON.parse(failed.stdout)).toMatchObject({ error: { stack: expect.stringContaining('order.mjs:6:') } });
  expect((await project.run(['status', 's'])).stdout).toContain('at loops/order.mjs:6:');
  expect(await project.json(['status', 's'])).toMatchObject({
    turns: [{ error: { stack: expect.stringContaining('order.mjs:6:') } }],
  });
});
