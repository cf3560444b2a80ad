// A harness in a temporary directory, with loops of every kind, that a library or a broken twin of it runs.

import { mkdirSync, mkdtempSync, realpathSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { onTestFinished } from 'vitest';
import type { DefinedLoop } from '../../src/loops/defined-loop.js';
import type { HarnessOptions, HarnessReport } from '../../src/surfaces/harness/run-harness.js';
import type { HarnessContext } from '../../src/surfaces/harness/scratch-host.js';
import type { SettingsInput } from '../../src/surfaces/settings.js';

/** What the fixture needs of the library. */
export type HarnessLibrary = Pick<typeof import('../../src/surfaces/compose.js'), 'loadLoops' | 'loadSettings'> &
  typeof import('../../src/surfaces/harness/harness-definitions.js') &
  typeof import('../../src/surfaces/harness/read-harness.js') &
  typeof import('../../src/surfaces/harness/run-harness.js');

const io = { name: 'A loop', version: '1.0.0', inputSchema: true, outputSchema: true };

/** An agent that pays after an approval, with a model that needs a key. */
const clerk = {
  ...{ ...io, id: 'clerk', kind: 'composite', inputSchema: { type: 'object' } },
  composite: { agent: { backend: { id: 'openai', model: 'gpt-5' }, tools: ['pay'], approvals: { pay: 'ask' } } },
};
const pay = { ...io, id: 'pay', kind: 'tool', tool: { implementation: 'builtin:echo', safety: 'once' } };
const fail = { ...io, id: 'fail', kind: 'tool', tool: { implementation: 'builtin:fail', safety: 'pure' } };
const ask = (id: string, backend: object) => ({
  ...io,
  id,
  kind: 'prompt',
  prompt: { template: 'Say hello.' },
  backend,
});

const LOOPS: Readonly<Record<string, object>> = {
  ...{ clerk, pay, fail },
  ask: ask('ask', { id: 'openai', model: 'gpt-5' }),
  local: ask('local', { id: 'mock' }),
  listed: ask('listed', { id: 'scripted', model: 'listed.script.json' }),
};

/** A tool that runs only if its directory is trusted. */
export const PROGRAM = { ...io, id: 'program', kind: 'tool', tool: { implementation: 'exec:./program' } };

/** A case that passes and mentions everything that a case can expect of a turn that succeeds. */
export const PAID_CASE = {
  name: 'paid',
  loop: 'clerk',
  input: { prompt: 'Pay 7 for lamp-1.' },
  now: '2026-01-31T09:00:00Z',
  grant: { allowedTools: ['clerk', 'pay'], limits: { modelRounds: 2 } },
  script: [
    { toolCalls: [{ name: 'pay', args: { amount: 7 } }], expect: 'lamp-1' },
    { object: { paid: { amount: 7, currency: 'EUR' }, items: [1, 2] }, expect: ['amount', '7'] },
  ],
  approvals: [{ tool: 'pay', approved: true, by: 'ada' }],
  expect: {
    status: 'ok',
    output: { text: '{"paid":{"amount":7,"currency":"EUR"},"items":[1,2]}' },
    outputContains: { text: '{"paid":{"amount":7,"currency":"EUR"},"items":[1,2]}' },
    receipt: {
      state: 'ok',
      final: true,
      effects: [
        { name: 'openai', state: 'done' },
        { name: 'pay', state: 'done' },
        { name: 'openai', state: 'done' },
      ],
      context: [],
      chain: 2,
      approvals: 1,
    },
    toolCalls: ['pay'],
    verdict: { valid: true, complete: 'unknown' },
  },
};

/** A case that passes and expects an error. */
export const FAILED_CASE = {
  name: 'failed',
  loop: 'fail',
  input: { message: 'The printer is on fire.' },
  expect: { status: 'error', code: 'TOOL_FAILED', reason: 'printer', receipt: { state: 'error', effects: 1 } },
};

/** The hosted loops of the project: the name of each file, and its content. */
const HOSTED_FILES: Readonly<Record<string, object>> = {
  'clerk-hosted.json': {
    ...{ id: 'clerks', loop: 'clerk', input: { prompt: 'Pay 7 for lamp-1.' }, stop: { maxTurns: 3 } },
    grant: { allowedTools: ['clerk', 'pay'], limits: { modelRounds: 4 } },
  },
  'daily.json': {
    ...{ id: 'daily', loop: 'nap', grant: { allowedTools: ['nap'], limits: {} }, stop: { maxTurns: 2 } },
    schedule: { cron: '0 9 * * *', zone: 'UTC' },
  },
  'late.json': {
    ...{ id: 'late', loop: 'nap', grant: { allowedTools: ['nap'], limits: {} } },
    stop: { maxTurns: 2, deadline: '2031-05-07T08:00:00Z' },
    schedule: { cron: '0 9 * * *', zone: 'UTC' },
  },
  'reports.json': {
    ...{ id: 'reports', loop: 'pay', next: '$.signal.payload', grant: { allowedTools: ['pay'], limits: {} } },
    stop: { maxTurns: 2, terminal: { path: '$.n', equals: 7 } },
    signals: { report: { schema: { type: 'object' } } },
  },
  'invalid.json': { id: 'invalid', loop: 'pay', grant: { allowedTools: [], limits: {} }, stop: {} },
};

/** A case that passes, with a hosted loop of three turns, the first of which needs an approval. */
export const HOSTED_CASE = {
  name: 'hosted',
  host: 'clerk-hosted.json',
  script: [
    { toolCalls: [{ name: 'pay', args: { amount: 7 } }], expect: 'lamp-1' },
    { text: 'Paid.' },
    { text: 'Nothing to pay.' },
    { text: 'Done.' },
  ],
  approvals: [{ tool: 'pay', approved: true, by: 'ada' }],
  expect: { reason: 'max_turns' },
};

/** A directory with a harness. */
export interface HarnessProject {
  readonly directory: string;
  write(name: string, content: object | string): string;
}

/** Creates a directory with the loops and a harness. */
export function harnessProject(harness: object | string): HarnessProject {
  const directory = realpathSync(mkdtempSync(join(tmpdir(), 'rondo-cases-')));
  onTestFinished(() => rmSync(directory, { recursive: true, force: true }));
  const write = (name: string, content: object | string): string => {
    mkdirSync(dirname(join(directory, name)), { recursive: true });
    writeFileSync(join(directory, name), typeof content === 'string' ? content : JSON.stringify(content));
    return join(directory, name);
  };
  for (const [name, definition] of Object.entries(LOOPS)) write(`loops/${name}.json`, definition);
  write('loops/listed.script.json', [{ text: 'Hello.' }, { text: 'Unused.' }]);
  for (const [name, document] of Object.entries(HOSTED_FILES)) write(name, document);
  write('harness.json', harness);
  return { directory, write };
}

/** How a harness runs. */
export interface HarnessRun
  extends Partial<Pick<HarnessOptions, 'receiptDirectory'>>,
    Pick<HarnessContext, 'onDirectory'> {
  /** The working directory. @default the directory of the harness */
  readonly cwd?: string;
  readonly env?: SettingsInput['env'];
  readonly flags?: SettingsInput['flags'];
  /** Loops in code that are added to those of the files. */
  readonly code?: readonly DefinedLoop[];
}

/** Reads and runs the harness of a directory. */
export async function runHarnessIn(
  library: HarnessLibrary,
  directory: string,
  { cwd = directory, env = {}, flags = {}, code = [], receiptDirectory, onDirectory }: HarnessRun = {},
): Promise<HarnessReport> {
  const project = await library.loadSettings({ flags, env, cwd });
  const harness = await library.readHarness(directory, project);
  const { settings, definitions } = await library.loadHarnessDefinitions(directory, harness, project, false);
  for (const loop of code) definitions.registry.add(loop, { directory: undefined, trusted: true });
  const context = { settings, definitions, ...(onDirectory !== undefined && { onDirectory }) };
  return library.runHarness(harness, context, { elapsed: () => performance.now(), receiptDirectory });
}

/** Runs cases and returns their reports by name. */
export async function runCases(
  library: HarnessLibrary,
  cases: readonly object[],
  options: HarnessRun = {},
): Promise<Readonly<Record<string, HarnessReport['cases'][number]>>> {
  const { directory } = harnessProject({ cases });
  const report = await runHarnessIn(library, directory, options);
  return Object.fromEntries(report.cases.map((item) => [item.name, item]));
}

/** Returns the paths at which a report differs. */
export const pathsOf = (report: HarnessReport['cases'][number] | undefined): readonly string[] =>
  (report?.differences ?? []).map(({ path }) => path);
