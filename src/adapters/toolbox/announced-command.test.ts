/** The announcements of a sandboxed command, and its wait for stores that are being created. */
import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, expect } from 'vitest';
import { exposedCommand, inodeAt } from '../../../spec/support/exposed-command.js';
import { cleanUp, createWorkspace, DATABASE, failure } from '../../../spec/support/toolbox-fixture.mjs';
import { verifies } from '../../../spec/verifies.js';
import { Announcement, listAnnouncements } from '../../base/announcement.js';
import { DATA_MARKER } from '../../journal/store-files.js';
import { waitForStoreCreations } from './announced-command.js';
import { toolbox } from './index.js';
import { probeSandbox } from './sandbox.js';

const isLinux = process.platform === 'linux';
const isSandboxed = 'bubblewrap' in (await probeSandbox());
afterAll(cleanUp);

const ownAnnouncements = () =>
  listAnnouncements()
    .filter(({ pid }) => pid === process.pid)
    .map(({ kind, directory }) => `${kind} ${directory}`);

verifies('toolbox.data.new', 'a command announces what it sees and what it hides until it ends', async (context) => {
  context.skip(!isSandboxed, 'needs bubblewrap');
  const { root, outside } = createWorkspace({ [`data/${DATA_MARKER}`]: '', 'db/x': DATABASE, 'db/x.anchor': 'x' });
  mkdirSync(join(root, 'sub'));
  const command = await exposedCommand(toolbox({ roots: [root, outside] }), root);
  expect(ownAnnouncements()).toEqual(
    expect.arrayContaining([
      `command ${inodeAt(root)}`,
      `command ${inodeAt(outside)}`,
      `hides ${inodeAt(join(root, 'data'))}`,
      `covers ${inodeAt(join(root, 'db'))}`,
    ]),
  );
  await command.finish();
  expect(ownAnnouncements()).toEqual([]);
});

verifies('toolbox.data.new', 'a command that does not run leaves no announcement', async (context) => {
  context.skip(!isSandboxed, 'needs bubblewrap');
  const { root } = createWorkspace();
  const abort = new AbortController();
  abort.abort();
  const { execute } = toolbox({ roots: [root] }).run_command.withApproval('always_allow');
  const options = { toolCallId: 'c', messages: [], onToolOutputDelta: () => undefined, abortSignal: abort.signal };
  expect(await failure(Promise.resolve(execute({ command: ':' }, options)))).toMatch(/abort/);
  expect(ownAnnouncements()).toEqual([]);
});

verifies(
  'toolbox.data.new',
  'a command that waits too long for a store fails with the id of its process',
  async (context) => {
    context.skip(!isLinux, 'needs Linux');
    const { root } = createWorkspace();
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
