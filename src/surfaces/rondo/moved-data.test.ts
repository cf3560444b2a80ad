/** What a process does whose data directory or keys are moved away while it runs. */
import { existsSync, mkdtempSync, renameSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { expect, onTestFinished } from 'vitest';
import { verifies } from '../../../spec/verifies.js';
import { createRondo, defineLoop } from '../../index.js';

const echo = defineLoop({ id: 'echo', input: true, output: true, run: async (input) => input });

function newDirectory(): string {
  const folder = mkdtempSync(join(tmpdir(), 'rondo-moved-'));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  return join(folder, 'data');
}

verifies('receipt.key-files', 'a process writes nothing to the path of its removed data directory', async () => {
  const data = newDirectory();
  const rondo = await createRondo({ data });
  expect(await rondo.run(echo, 1)).toMatchObject({ status: 'ok' });
  // The receipt is in the log: the process has nothing left to write to its store.
  await sleep(100);
  rmSync(data, { recursive: true });
  await rondo.close().catch(() => undefined);
  expect(existsSync(data), 'the next store at this path begins with the lengths of another one').toBe(false);
});

verifies('receipt.key-files', 'a process whose keys are moved away signs nothing with new ones', async () => {
  const data = newDirectory();
  const rondo = await createRondo({ data });
  // Before the first receipt, when the process has not read its keys.
  renameSync(join(data, 'keys'), join(data, 'kept'));
  await expect(rondo.run(echo, 1)).rejects.toMatchObject({ code: 'KEYS_UNUSABLE' });
  expect(existsSync(join(data, 'keys')), 'new keys were made').toBe(false);
  renameSync(join(data, 'kept'), join(data, 'keys'));
  expect(await rondo.run(echo, 1)).toMatchObject({ status: 'ok' });
  await rondo.close();
});
