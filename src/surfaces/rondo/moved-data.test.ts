/** What a process does whose data directory or keys are moved away while it runs. */
import { cpSync, existsSync, mkdirSync, mkdtempSync, readdirSync, renameSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { expect, onTestFinished } from 'vitest';
import { type CommandResult, runCommand } from '../../../spec/support/command-line.js';
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

/** Runs a verb on a data directory. */
function rondo(data: string, ...args: readonly string[]): Promise<CommandResult> {
  return runCommand([...args, '--data', data], { cwd: dirname(data), env: {} });
}

/** Starts a runtime that owns a store, runs a turn, and takes the directory of the keys away. */
async function ownerWithoutKeys(replace: (keys: string, kept: string) => void) {
  const data = newDirectory();
  const [keys, kept] = [join(data, 'keys'), join(data, 'kept')];
  const owner = await createRondo({ data });
  expect(await owner.run(echo, 1)).toMatchObject({ status: 'ok' });
  renameSync(keys, kept);
  replace(keys, kept);
  return { data, owner, keys, kept };
}

const replacements: Readonly<Record<string, (keys: string, kept: string) => void>> = {
  'moved away': () => {},
  'replaced by an empty directory': (keys) => mkdirSync(keys, { mode: 0o700 }),
  'replaced by its files without the keys that sign': (keys, kept) => {
    cpSync(kept, keys, { recursive: true });
    for (const name of readdirSync(keys)) if (/^receipt-|^checkpoint-|^keys\.json/.test(name)) rmSync(join(keys, name));
  },
};

for (const [what, replace] of Object.entries(replacements)) {
  verifies(
    'receipt.key-files',
    `a process that starts after the keys of a used store were ${what} makes no new ones`,
    async () => {
      const { data, owner, keys, kept } = await ownerWithoutKeys(replace);
      const client = await createRondo({ data });
      await expect(client.run(echo, 2)).rejects.toMatchObject({
        code: 'KEYS_UNUSABLE',
        message: expect.stringMatching(/Restore the directory/),
      });
      expect((await rondo(data, 'export')).stderr).toContain('KEYS_UNUSABLE');
      const found = existsSync(keys) ? readdirSync(keys).filter((name) => /\.key$|^keys\.json$/.test(name)) : [];
      expect(found, 'receipts of unknown keys spoil the store').toEqual([]);
      await client.close();
      rmSync(keys, { recursive: true, force: true });
      renameSync(kept, keys);
      expect(await owner.run(echo, 3)).toMatchObject({ status: 'ok' });
      expect((await rondo(data, 'export')).code).toBe(0);
      expect((await rondo(data, 'verify', '--all')).code).toBe(0);
      await owner.close();
    },
  );
}

verifies(
  'receipt.key-files',
  'keys of another store in the place of those of a store sign nothing for it',
  async () => {
    const [other, { data, owner, keys, kept }] = [newDirectory(), await ownerWithoutKeys(() => {})];
    const foreign = await createRondo({ data: other });
    await foreign.run(echo, 1);
    await foreign.close();
    cpSync(join(other, 'keys'), keys, { recursive: true });
    const client = await createRondo({ data });
    await expect(client.run(echo, 2)).rejects.toMatchObject({ code: 'KEYS_UNUSABLE' });
    rmSync(keys, { recursive: true });
    renameSync(kept, keys);
    await client.close();
    expect(await owner.run(echo, 3)).toMatchObject({ status: 'ok' });
    expect((await rondo(data, 'verify', '--all')).code).toBe(0);
    await owner.close();
  },
);

verifies('host.work', 'a worker whose data directory is removed ends with a fault', async () => {
  const data = newDirectory();
  const [owner, client] = [await createRondo({ data }), await createRondo({ data })];
  await owner.run(echo, 1);
  const working = [owner.work(), client.work(), rondo(data, 'worker')];
  await sleep(300);
  rmSync(data, { recursive: true });
  const [ofOwner, ofClient, ofVerb] = await Promise.allSettled(working);
  for (const ended of [ofOwner, ofClient])
    expect(ended).toMatchObject({ status: 'rejected', reason: { code: 'STORE_MISSING' } });
  expect(ofVerb).toMatchObject({
    status: 'fulfilled',
    value: { code: 70, stderr: expect.stringContaining('STORE_MISSING') },
  });
  for (const each of [client, owner]) await each.close().catch(() => undefined);
});
