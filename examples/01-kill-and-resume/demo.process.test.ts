import { spawnSync } from 'node:child_process';
import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { expect } from 'vitest';
import { verifies } from '../../spec/verifies.js';
import { openSqlite } from '../../src/adapters/sqlite/index.js';
import type { Entry } from '../../src/protocol/index.js';
import type { ReportedEffect } from '../../src/testing/index.js';
import { findProblems, reportData } from './checks.mjs';

const timeoutMs = 300_000;
const demo = fileURLToPath(new URL('run.mjs', import.meta.url));

/** Runs the demo with a temporary directory of its own, and passes its output and that directory to `inspect`. */
async function run<T>(
  args: string[],
  inspect: (output: string, folder: string, code: number | null) => T | Promise<T>,
): Promise<T> {
  const folder = mkdtempSync(join(tmpdir(), 'rondo-demo-test-'));
  try {
    const env = { ...process.env, NO_COLOR: '1', TMPDIR: folder, TEMP: folder };
    const { stdout, stderr, status } = spawnSync(process.execPath, [demo, ...args], { env, encoding: 'utf8' });
    return await inspect(stdout + stderr, folder, status);
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

async function journalIn(folder: string): Promise<Entry[]> {
  const store = await openSqlite(join(folder, 'journal.db'));
  const entries: Entry[] = [];
  for await (const batch of store.journal.read('order-1042', 0)) entries.push(...batch);
  await store.close();
  return entries;
}

/** Runs the demo and returns the evidence that its checks received. */
function evidence(): Promise<Parameters<typeof findProblems>[0]> {
  return run(['--keep'], async (printed, folder, code) => {
    expect(code, printed).toBe(0);
    const demoFolder = join(folder, readdirSync(folder)[0] ?? '');
    const lines = readFileSync(join(demoFolder, 'sink.log'), 'utf8').trim().split('\n');
    const reports = lines.map((line) => JSON.parse(line) as ReportedEffect);
    const journal = await journalIn(demoFolder);
    const entriesAtKill = journal.slice(0, Number(/a journal of (\d+) entries/.exec(printed)?.[1]));
    const expectedEffects = [...new Set(reports.map((report) => reportData(report).name))];
    const interruptedEffects = ['charge card', 'print label'];
    const secondPid = Number(/Process 2 {2}pid (\d+)/.exec(printed)?.[1]);
    const output = journal.at(-1)?.value;
    return { expectedEffects, interruptedEffects, reports, entriesAtKill, journal, secondPid, output };
  });
}

verifies(
  'demo.resume',
  'the demo performs no effect twice and leaves no files',
  () =>
    run([], (printed, folder, code) => {
      expect(code, printed).toBe(0);
      expect(printed).toMatch(
        /SIGKILL\. The card is charged and the label is printed, but process 1 received no answer\./,
      );
      expect(printed).toMatch(/charge card +known key: not performed again/);
      expect(printed).toMatch(/print label +in doubt/);
      expect(printed).toMatch(/reserve lamp +1 +1 +process 1\n/);
      expect(printed).toMatch(/charge card +2 +1 +process 1 and 2, with one idempotency key\n/);
      expect(printed).toMatch(/print label +1 +1 +process 1\n/);
      expect(printed).toContain('Nothing was done twice, nothing was lost.');
      expect(printed).toMatch(
        /print label\n.*SIGKILL, process 2.*\n +11 +effect\.repeated +t1\S+ +charge card\n +12 +effect\.returned/,
      );
      expect(printed).not.toContain('\x1b');
      expect(readdirSync(folder)).toEqual([]);
    }),
  timeoutMs,
);

verifies(
  'demo.resume',
  'the checks of the demo detect a repeated or lost effect and a changed journal',
  async () => {
    const good = await evidence();
    expect(findProblems(good)).toEqual([]);

    const { reports, journal, entriesAtKill, secondPid } = good;
    const printReports = reports.filter((report) => reportData(report).name === 'print label');
    const rewritten = journal.map((entry) => (entry.seq === 1 ? { ...entry, at: 0 } : entry));
    const early = journal.map((entry) => (entry.type === 'timer.fired' ? { ...entry, at: 0 } : entry));
    const data = { name: 'reserve lamp', key: '', pid: secondPid, answer: '' };
    const repeated = { kind: 'received', key: '', data };
    const broken: [string, Partial<typeof good>][] = [
      ['"print label" was performed 2 times.', { reports: [...reports, ...printReports] }],
      ['"print label" was lost', { reports: reports.filter((report) => !printReports.includes(report)) }],
      ['"reserve lamp" had a result, but process 2 requested it again.', { reports: [...reports, repeated] }],
      ['"reserve lamp" was requested with 2 different', { reports: [...reports, repeated] }],
      ['Process 2 changed entries that process 1 had written.', { journal: rewritten }],
      ['"charge card" has 0 results', { journal: journal.slice(0, entriesAtKill.length) }],
      ['"print label" was requested before its intent', { entriesAtKill: entriesAtKill.slice(0, -1) }],
      ['The timer fired too early.', { journal: early }],
      ['Process 2 returned null', { output: null }],
    ];
    for (const [problem, change] of broken) expect(findProblems({ ...good, ...change }).join('\n')).toContain(problem);
  },
  timeoutMs,
);

verifies('demo.resume', 'a misspelt option is refused', () =>
  run(['--keeep'], (printed, folder, code) => {
    expect(code).toBe(2);
    expect(printed).toContain('The only option is --keep.');
    expect(readdirSync(folder)).toEqual([]);
  }),
);
