// Checks of context: each holds on the intact library and fails when its guard is broken.

import { rejects, strictEqual, throws } from 'node:assert';
import { renameSync, symlinkSync, writeFileSync } from 'node:fs';
import { open } from 'node:fs/promises';
import { join } from 'node:path';
import type { TurnResult } from '../../src/protocol/trace.js';
import { type ContextProject, withContext } from '../support/context-fixture.js';
import { agentDef, replyProvider } from '../support/scripted-agents.js';
import { errorOf } from '../support/turn-results.js';
import { type HostLibrary, hostParts, type LibraryParts } from './library.js';

export const contextParts: LibraryParts = [
  ...hostParts,
  'adapters/files/context-files.js',
  'adapters/files/read-text.js',
  'loops/context/read-context.js',
];

type ContextLibrary = HostLibrary &
  typeof import('../../src/adapters/files/context-files.js') &
  typeof import('../../src/adapters/files/read-text.js') &
  typeof import('../../src/loops/context/read-context.js');

type ContextCheck = (library: ContextLibrary) => Promise<void>;

/** Asserts that a definition with these references is refused when it is registered. */
const refusesList =
  (...contextSkills: readonly string[]): ContextCheck =>
  async ({ Registry }) => {
    throws(() => new Registry().add(agentDef('helper', { contextSkills })), /helper|definition/);
  };

/** Reads references of a definition in the directory of a project, or in another one that it claims. */
function read(
  { contextFilesIn, readContext }: ContextLibrary,
  { directory }: ContextProject,
  references: readonly string[],
  claimed = directory,
) {
  const files = contextFilesIn({ directory, definitionDirectories: () => [directory] });
  const summarizeReceipts = async (): Promise<string> => 'x'.repeat(64 * 1024 + 1);
  return readContext(references, { directory: claimed, trusted: false }, { files, summarizeReceipts });
}

/** Runs a turn until it waits for a signal, changes its context, and does something with it. */
async function afterChange(
  { Host, Registry, memoryStore, ManualClock, seededIds, contextFilesIn, defineLoop }: ContextLibrary,
  act: (host: InstanceType<ContextLibrary['Host']>, turnId: string) => Promise<TurnResult | undefined>,
): Promise<TurnResult | undefined> {
  let result: TurnResult | undefined;
  await withContext({ 'guide.md': 'one' }, async (project) => {
    const { directory } = project;
    const wait = defineLoop({ id: 'wait', input: true, output: true, run: (_, scope) => scope.wait('go') });
    const registry = new Registry();
    const origin = { directory, trusted: true };
    for (const definition of [wait, agentDef('helper', { tools: ['wait'], contextSkills: ['guide.md'] })])
      registry.add(definition, origin);
    const model = replyProvider([{ calls: [['wait', {}]] }, { text: 'done' }]);
    const host = new Host({
      store: memoryStore(),
      clock: new ManualClock(1_000_000),
      ids: seededIds(1),
      registry,
      providers: new Map([[model.id, model]]),
      contextFiles: contextFilesIn({ directory, definitionDirectories: () => [directory] }),
    });
    const { turnId, status } = await host.run({ loop: 'helper', input: { prompt: 'x' } });
    strictEqual(status, 'paused');
    project.write('guide.md', 'two');
    result = await act(host, turnId);
  });
  return result;
}

export const contextChecks = {
  'a URL is no reference': refusesList('mailto:ada'),
  'a hidden file, or a path with "..", is no reference': async (library) => {
    for (const path of ['.env', '../b.md', 'a/../../b.md']) await refusesList(path)(library);
  },
  'a thirteenth reference is refused': refusesList(...Array.from({ length: 13 }, (_, n) => `${n}.md`)),
  'a repeated reference is refused': refusesList('a.md', './a.md'),

  'one file under two names is refused': (library) =>
    withContext({ 'a.md': 'A' }, async (project) => {
      symlinkSync('a.md', join(project.directory, 'b.md'));
      await rejects(read(library, project, ['a.md', 'b.md']), /same file/);
    }),

  'a text over 64 KiB is refused': (library) =>
    withContext({}, async (project) => {
      await rejects(read(library, project, ['receipt:a.b']), /65537 bytes/);
    }),

  'texts over 256 KiB together are refused': (library) => {
    const names = ['0.md', '1.md', '2.md', '3.md', '4.md'];
    const files = Object.fromEntries(names.map((name) => [name, name.padEnd(60 * 1024)]));
    return withContext(files, async (project) => {
      await rejects(read(library, project, names), /the maximum is 262144/);
    });
  },

  'a link that leaves the directory is refused': (library) =>
    withContext({}, async (project) => {
      const { directory, outside } = project;
      writeFileSync(join(outside, 'x.md'), 'secret');
      symlinkSync(join(outside, 'x.md'), join(directory, 'x.md'));
      await rejects(read(library, project, ['x.md']), /leaves its directory/);
    }),

  'a folder that is replaced while its file is opened is noticed': ({ readTextWithin }) =>
    withContext({ 'folder/x.md': 'inside' }, async ({ directory, outside }) => {
      writeFileSync(join(outside, 'x.md'), 'secret');
      symlinkSync(outside, join(directory, 'link'));
      const openReplaced: typeof open = (path, flags) => {
        renameSync(join(directory, 'folder'), join(directory, 'away'));
        renameSync(join(directory, 'link'), join(directory, 'folder'));
        return open(path, flags);
      };
      await rejects(readTextWithin(directory, 'folder/x.md', 100, openReplaced), /leaves its directory/);
    }),

  'a definition that claims an unknown directory reads nothing there': (library) =>
    withContext({}, async (project) => {
      writeFileSync(join(project.outside, 'x.md'), 'secret');
      await rejects(read(library, project, ['x.md'], project.outside), /claims the directory/);
    }),

  'a turn whose context has changed does not continue': async (library) => {
    const result = await afterChange(library, async (host, turnId) => {
      await host.signal({ turnId, name: 'go', payload: {} });
      return host.resume(turnId);
    });
    strictEqual(result && errorOf(result)?.code, 'CONTEXT_CHANGED');
  },

  'a cancelled turn ends although its context has changed': async (library) => {
    await afterChange(library, async (host, turnId) => {
      await host.cancel(turnId, 'not needed');
      strictEqual((await host.archive.status(turnId))[0]?.status, 'cancelled');
      return undefined;
    });
  },
} as const satisfies { readonly [promise: string]: ContextCheck };
