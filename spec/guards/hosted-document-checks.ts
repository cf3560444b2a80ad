// Checks of hosted loop documents and their files: each holds on the intact library and fails when its guard is broken.

import { deepStrictEqual, ok, rejects, strictEqual, throws } from 'node:assert';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { onTestFinished } from 'vitest';
import type { ProjectSettings } from '../../src/surfaces/compose.js';
import { fullHostedLoop, smallestHostedLoop } from '../support/random-hosted-documents.js';
import type { LibraryParts } from './library.js';

/** The modules that read hosted loops. */
export const hostedDocumentParts: LibraryParts = [
  'host/hosted/hosted-document.js',
  'adapters/files/hosted-files.js',
  'adapters/files/load.js',
  'loops/plan/workflow-document.js',
  'surfaces/compose/hosted-files.js',
];

type HostedDocumentLibrary = typeof import('../../src/host/hosted/hosted-document.js') &
  typeof import('../../src/adapters/files/hosted-files.js') &
  typeof import('../../src/adapters/files/load.js') &
  typeof import('../../src/loops/plan/workflow-document.js') &
  typeof import('../../src/surfaces/compose/hosted-files.js');

type HostedDocumentCheck = (library: HostedDocumentLibrary) => Promise<void>;

/** Returns a check that documents with these changes are refused, and that the message names the path. */
const refuses =
  (path: string, ...changes: readonly object[]): HostedDocumentCheck =>
  async ({ parseHostedLoop }) => {
    parseHostedLoop(fullHostedLoop);
    for (const change of changes)
      throws(
        () => parseHostedLoop({ ...fullHostedLoop, ...change }),
        ({ data }) => {
          const { flaws } = data as { flaws: readonly { readonly path: string }[] };
          ok(
            flaws.some((flaw) => flaw.path === path),
            JSON.stringify(flaws),
          );
          return true;
        },
      );
  };

const { maxTurns: _, ...stopWithoutMaximum } = fullHostedLoop.stop;
const verify = { method: 'hmac-sha256', secret: 'env:ONE' };
const [handoff] = fullHostedLoop.handoffs;
const manySignals = Object.fromEntries(Array.from({ length: 101 }, (__, index) => [`s${index}`, { schema: true }]));

/** Writes files into a new directory, which is removed after the test, and returns its path. */
function directoryOf(files: { readonly [name: string]: string }): string {
  const directory = mkdtempSync(join(tmpdir(), 'rondo-hosted-'));
  onTestFinished(() => rmSync(directory, { recursive: true, force: true }));
  for (const [file, text] of Object.entries(files)) writeFileSync(join(directory, file), text);
  return directory;
}

export const hostedDocumentChecks = {
  'a hosted loop without a maximum of turns is refused': refuses('/stop/maxTurns', { stop: stopWithoutMaximum }),
  'a hosted loop with more than a million turns is refused': refuses('/stop/maxTurns', {
    stop: { maxTurns: 1_000_001 },
  }),
  'an unknown member of a hosted loop is refused': refuses('/stopp', { stopp: { maxTurns: 1 } }),
  'an unknown stop condition is refused': refuses('/stop/noProgres', { stop: { maxTurns: 5, noProgres: 1 } }),
  'a mapping that no projection can satisfy is refused': refuses('/next', { next: '$.lasst' }),
  'a stop condition on several values is refused': refuses('/stop/confidence/path', {
    stop: { maxTurns: 5, confidence: { path: '$.scores[*]', atLeast: 1 } },
  }),
  'a misspelt keyword in the schema of a signal is refused': refuses('/signals/a/schema', {
    signals: { a: { schema: { requird: ['id'] } } },
  }),
  'a hosted loop with more than 100 signals is refused': refuses('/signals', { signals: manySignals }),
  'a signal with a strange name is refused': refuses('/signals/a b', { signals: { 'a b': { schema: true } } }),
  'two signals with one secret are refused': refuses('/signals/b/verify/secret', {
    signals: { a: { schema: true, verify }, b: { schema: true, verify } },
  }),
  'the grant of a turn with a budget of its own is refused': refuses('/turn/grant/id', {
    turn: { grant: { id: 'other' } },
  }),
  'an invalid grant of a turn or a handoff is refused': async (library) => {
    await refuses('/turn/grant/limits/turns', { turn: { grant: { limits: { turns: -1 } } } })(library);
    await refuses('/handoffs/0/grant/tools', { handoffs: [{ ...handoff, grant: { tools: [] } }] })(library);
  },
  'overlap and catch-up without due times are refused': refuses('/overlap', { schedule: { delayMs: 5 } }),
  'a day of TOML that does not exist is refused': async ({ parseHostedLoop, parseHostedLoopText }) => {
    const text =
      'id = "a"\nloop = "b"\ngrant = { allowedTools = [], limits = {} }\nstop = { maxTurns = 1, deadline = DAY }';
    const read = (day: string) =>
      parseHostedLoopText('a.toml', text.replace('DAY', `${day}T12:00:00Z`), parseHostedLoop).document;
    strictEqual(read('2030-02-28')?.id, 'a');
    strictEqual(read('2030-02-30'), undefined);
  },
  'a hosted loop among definitions is no broken definition': async (library) => {
    const { loadDefinitions, documentParser: parser, parseHostedLoop } = library;
    const directory = directoryOf({ 'a.json': JSON.stringify(smallestHostedLoop) });
    const loadHostedParser = async () => parseHostedLoop;
    const loaded = await loadDefinitions(directory, { parser, trusted: () => false, loadHostedParser });
    deepStrictEqual(loaded.badFiles, []);
    strictEqual(loaded.hosted.length, 1);
  },
  'an id of two hosted loop files selects none of them': async ({ findHostedLoopFile }) => {
    const text = JSON.stringify(smallestHostedLoop);
    const loopsDirectory = directoryOf({ 'a.json': text, 'b.json': text });
    const settings = { cwd: loopsDirectory, loopsDirectory, hasExplicitLoops: true } as unknown as ProjectSettings;
    await rejects(findHostedLoopFile(settings, smallestHostedLoop.id), /is defined in/);
  },
} as const satisfies { readonly [promise: string]: HostedDocumentCheck };
