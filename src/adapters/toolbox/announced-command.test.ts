/** What a sandboxed command announces while it runs, and how long it waits for a store that is being created. */
import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, expect } from 'vitest';
import { exposedCommand, inodeAt } from '../../../spec/support/exposed-command.js';
import { cleanUp, DATABASE, failure, stage } from '../../../spec/support/toolbox-fixture.mjs';
import { verifies } from '../../../spec/verifies.js';
import { Announcement, listAnnouncements } from '../../base/announcement.js';
import { DATA_MARKER } from '../../journal/store-files.js';
import { waitForStoreCreations } from './announced-command.js';
import { toolbox } from './index.js';
import { probeSandbox } from './sandbox.js';

const isLinux = process.platform === 'linux';
const isSandboxed = 'bubblewrap' in (await probeSandbox());
afterAll(cleanUp);

const own = () =>
  listAnnouncements()
    .filter(({ pid }) => pid === process.pid)
    .map(({ kind, directory }) => `${kind} ${directory}`);

verifies('toolbox.data.new', 'a command announces what it sees and what it hides until it ends', async (context) => {
  context.skip(!isSandboxed, 'needs bubblewrap');
  const { root, outside } = stage({ [`data/${DATA_MARKER}`]: '', 'db/x': DATABASE, 'db/x.anchor': 'x' });
  mkdirSync(join(root, 'sub'));
  const command = await exposedCommand(toolbox({ roots: [root, outside] }), root);
  expect(own()).toEqual(
    expect.arrayContaining([
      `command ${inodeAt(root)}`,
      `command ${inodeAt(outside)}`,
      `hides ${inodeAt(join(root, 'data'))}`,
      `covers ${inodeAt(join(root, 'db'))}`,
    ]),
  );
  await command.finish();
  expect(own()).toEqual([]);
});

verifies('toolbox.data.new', 'a command that does not run announces nothing afterwards', async (context) => {
  context.skip(!isSandboxed, 'needs bubblewrap');
  const { root } = stage();
  const abort = new AbortController();
  abort.abort();
  const { execute } = toolbox({ roots: [root] }).run_command.withApproval('always_allow');
  const options = { toolCallId: 'c', messages: [], onToolOutputDelta: () => undefined, abortSignal: abort.signal };
  expect(await failure(Promise.resolve(execute({ command: ':' }, options)))).toMatch(/abort/);
  expect(own()).toEqual([]);
});

verifies(
  'toolbox.data.new',
  'a command that waits too long for a store is refused and names the process',
  async (context) => {
    context.skip(!isLinux, 'needs Linux');
    const { root } = stage();
    const creation = new Announcement();
    await creation.add('store', [inodeAt(root)]);
    const wait = (ms: number, abort?: AbortSignal) =>
      failure(waitForStoreCreations(new Set([inodeAt(root)]), { realPaths: [root] }, abort, ms));
    expect(await wait(100)).toMatch(`Nothing was run: process ${process.pid} has been creating a store in ${root}`);
    expect(await wait(60_000, AbortSignal.timeout(50))).toMatch(/timeout/);
    creation.release();
    expect(await wait(0)).toBe('It returned undefined');
  },
);
