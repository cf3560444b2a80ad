// Checks of the harness: each holds on the intact library and fails when its guard is broken.

import { deepStrictEqual, ok, rejects, strictEqual } from 'node:assert';
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import {
  type HarnessLibrary,
  HOSTED_CASE,
  harnessProject,
  PAID_CASE,
  PROGRAM,
  pathsOf,
  runCases,
  runHarnessIn,
} from '../support/harness-fixture.js';
import { modelWithParts } from '../support/test-models.js';
import type { LibraryParts } from './library.js';

export const harnessParts: LibraryParts = [
  'surfaces/compose.js',
  'surfaces/harness/harness-definitions.js',
  'surfaces/harness/read-harness.js',
  'surfaces/harness/run-harness.js',
  'surfaces/harness/run-hosted-case.js',
  'surfaces/harness/differences.js',
  'surfaces/harness/receipt-directory.js',
  'loops/define-agent.js',
];

type Library = HarnessLibrary &
  typeof import('../../src/surfaces/harness/differences.js') &
  typeof import('../../src/surfaces/harness/receipt-directory.js') &
  typeof import('../../src/surfaces/harness/run-hosted-case.js') &
  typeof import('../../src/loops/define-agent.js');

type Check = (library: Library) => Promise<void>;

const [first, second] = PAID_CASE.script;
const [answer] = PAID_CASE.approvals;
const error = { status: 'error' };

/** Runs one case and returns the paths at which it differs. */
async function differencesOf(library: Library, item: object): Promise<readonly string[]> {
  return pathsOf(Object.values(await runCases(library, [item]))[0]);
}

/** Reads a harness. Rejects if it is refused. */
async function read(library: Library, harness: object): Promise<unknown> {
  const { directory } = harnessProject(harness);
  return library.readHarness(directory, await library.loadSettings({ flags: {}, env: {}, cwd: directory }));
}

export const harnessChecks = {
  'a script replaces a model object': async (library) => {
    const assistant = library.defineAgent({ id: 'assistant', model: modelWithParts(), tools: {} });
    const item = { name: 'object', loop: 'assistant', input: { prompt: 'x' }, script: [{ text: 'Hi.' }] };
    const expectation = { status: 'ok', output: { text: 'Hi.' } };
    const reports = await runCases(library, [{ ...item, expect: expectation }], { code: [assistant] });
    deepStrictEqual(reports.object?.differences, []);
  },
  'a request without an expected text fails the case': async (library) => {
    const script = [{ ...first, expect: 'lamp-2' }, second];
    ok((await differencesOf(library, { ...PAID_CASE, script })).includes('/script/0/expect'));
  },
  'a model without a script is not called': async (library) => {
    deepStrictEqual(await differencesOf(library, { name: 'ask', loop: 'ask', expect: error }), ['/script/0']);
  },
  'unused steps of a script fail the case': async (library) => {
    const local = { name: 'local', loop: 'local', script: [{ text: 'a' }, { text: 'b' }], expect: { status: 'ok' } };
    deepStrictEqual(await differencesOf(library, local), ['/script']);
  },
  'unused answers fail the case': async (library) => {
    const item = { ...PAID_CASE, approvals: [answer, answer] };
    deepStrictEqual(await differencesOf(library, item), ['/approvals/1']);
  },
  'a misspelt expectation is refused': async (library) => {
    const misspelt = { ...PAID_CASE, expect: { status: 'ok', outputs: {} } };
    await rejects(read(library, { cases: [misspelt] }), /outputs/);
  },
  'definitions outside of the project are refused': async (library) => {
    await rejects(read(library, { cases: [PAID_CASE], loops: '/' }), /outside/);
  },
  'a harness that is not trusted runs no definitions of others that need trust': async (library) => {
    const { directory: cwd, write } = harnessProject({ cases: [] });
    write('clone/harness.json', { cases: [PAID_CASE] });
    write('loops/program.json', PROGRAM);
    const flags = { trust: [join(cwd, 'loops')] };
    await rejects(runHarnessIn(library, join(cwd, 'clone'), { cwd, flags }), /rondo trust/);
  },
  'a store that is not valid fails the case': async ({ verdictDifferences }) => {
    const verdict = { valid: false, complete: 'unknown', reasons: ['signature_invalid'] } as const;
    strictEqual(verdictDifferences(undefined, verdict).length, 1);
  },
  'a case writes nothing into the project': async (library) => {
    const { directory } = harnessProject({ cases: [PAID_CASE] });
    const { ok: isOk } = await runHarnessIn(library, directory);
    ok(isOk);
    ok(!existsSync(join(directory, '.rondo')));
  },
  'a hosted loop that did not stop as expected fails the case': async (library) => {
    const paths = await differencesOf(library, { ...HOSTED_CASE, expect: { reason: 'terminal' } });
    deepStrictEqual(paths, ['/expect/reason']);
  },
  'unused steps of a script fail a case with a hosted loop': async (library) => {
    const script = [...HOSTED_CASE.script, { text: 'more' }];
    deepStrictEqual(await differencesOf(library, { ...HOSTED_CASE, script }), ['/script']);
  },
  'unused answers fail a case with a hosted loop': async (library) => {
    const [only] = HOSTED_CASE.approvals;
    deepStrictEqual(await differencesOf(library, { ...HOSTED_CASE, approvals: [only, only] }), ['/approvals/1']);
  },
  'the steps of a case are bounded': async ({ maxStepsOf }) => {
    const item = { signals: [], approvals: [] };
    deepStrictEqual([maxStepsOf({ maxTurns: 3 }, item), maxStepsOf({ maxTurns: 1_000_000 }, item)], [400, 10_000]);
  },
  'receipts are not written among other files': async ({ ReceiptDirectory: Directory }) => {
    const { directory } = harnessProject({ cases: [PAID_CASE] });
    await rejects(
      Directory.create(directory, () => false),
      /not empty/,
    );
  },
  'a harness without cases does not pass': async (library) => {
    const { directory } = harnessProject({ cases: [PAID_CASE] });
    const settings = await library.loadSettings({ flags: {}, env: {}, cwd: directory });
    const context = { settings, definitions: await library.loadLoops(settings) };
    const empty = { file: '', loops: undefined, cases: [] };
    strictEqual((await library.runHarness(empty, context, { elapsed: () => 0 })).ok, false);
  },
} as const satisfies { readonly [promise: string]: Check };
