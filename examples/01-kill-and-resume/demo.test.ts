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
import { faultsOf, noteOf } from './judge.mjs';

const patience = 300_000;
const demo = fileURLToPath(new URL('run.mjs', import.meta.url));

/** Runs the demo with a temporary folder of its own, and shows what it said and what it left there. */
async function run<T>(
  args: string[],
  look: (said: string, folder: string, code: number | null) => T | Promise<T>,
): Promise<T> {
  const folder = mkdtempSync(join(tmpdir(), 'rondo-demo-test-'));
  try {
    const env = { ...process.env, NO_COLOR: '1', TMPDIR: folder, TEMP: folder };
    const { stdout, stderr, status } = spawnSync(process.execPath, [demo, ...args], { env, encoding: 'utf8' });
    return await look(stdout + stderr, folder, status);
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

async function journalIn(folder: string): Promise<Entry[]> {
  const store = await openSqlite(join(folder, 'journal.db'));
  const entries: Entry[] = [];
  for await (const some of store.journal.read('order-1042', 0)) entries.push(...some);
  await store.close();
  return entries;
}

/** All that the judge of a real run was given. */
function evidence(): Promise<Parameters<typeof faultsOf>[0]> {
  return run(['--keep'], async (said, folder, code) => {
    expect(code, said).toBe(0);
    const kept = join(folder, readdirSync(folder)[0] ?? '');
    const lines = readFileSync(join(kept, 'sink.log'), 'utf8').trim().split('\n');
    const sightings = lines.map((line) => JSON.parse(line) as ReportedEffect);
    const journal = await journalIn(kept);
    const left = journal.slice(0, Number(/a journal of (\d+) entries/.exec(said)?.[1]));
    const ordered = [...new Set(sightings.map((sighting) => noteOf(sighting).name))];
    const second = Number(/Process 2 {2}pid (\d+)/.exec(said)?.[1]);
    const output = journal.at(-1)?.value;
    return { ordered, cutOff: ['charge card', 'print label'], sightings, left, journal, second, output };
  });
}

verifies(
  'demo.resume',
  'the demo does not show what it promises, or leaves files behind',
  () =>
    run([], (said, folder, code) => {
      expect(code, said).toBe(0);
      expect(said).toMatch(/SIGKILL\. The card is charged, the label is printed, and process 1 never knew\./);
      expect(said).toMatch(/charge card +its key is known: not done again/);
      expect(said).toMatch(/print label +in doubt/);
      expect(said).toMatch(/reserve lamp +1 +1 +process 1\n/);
      expect(said).toMatch(/charge card +2 +1 +process 1 and 2, under one idempotency key\n/);
      expect(said).toMatch(/print label +1 +1 +process 1\n/);
      expect(said).toContain('Nothing was done twice, nothing was lost.');
      expect(said).toMatch(/print label\n.*SIGKILL, process 2.*\n +11 +effect\.returned/);
      expect(said).not.toContain('\x1b');
      expect(readdirSync(folder)).toEqual([]);
    }),
  patience,
);

verifies(
  'demo.resume',
  'the judge of the demo lets a double, a loss or a changed journal pass',
  async () => {
    const good = await evidence();
    expect(faultsOf(good)).toEqual([]);

    const { sightings, journal, left, second } = good;
    const printed = sightings.filter((seen) => noteOf(seen).name === 'print label');
    const rewritten = journal.map((entry) => (entry.seq === 1 ? { ...entry, at: 0 } : entry));
    const early = journal.map((entry) => (entry.type === 'timer.fired' ? { ...entry, at: 0 } : entry));
    const again = { kind: 'asked', key: '', data: { name: 'reserve lamp', key: '', pid: second, answer: '' } };
    const broken: [string, Partial<typeof good>][] = [
      ['"print label" happened 2 times.', { sightings: [...sightings, ...printed] }],
      ['"print label" was lost', { sightings: sightings.filter((seen) => !printed.includes(seen)) }],
      ['"reserve lamp" had a result, and process 2 asked again.', { sightings: [...sightings, again] }],
      ['"reserve lamp" was asked for under 2 different', { sightings: [...sightings, again] }],
      ['Process 2 changed what process 1 had written.', { journal: rewritten }],
      ['"charge card" has 0 results', { journal: journal.slice(0, left.length) }],
      ['"print label" was asked for before its intent', { left: left.slice(0, -1) }],
      ['The timer fired too early.', { journal: early }],
      ['Process 2 returned null', { output: null }],
    ];
    for (const [fault, change] of broken) expect(faultsOf({ ...good, ...change }).join('\n')).toContain(fault);
  },
  patience,
);

verifies('demo.resume', 'a mistyped option is ignored', () =>
  run(['--keeep'], (said, folder, code) => {
    expect(code).toBe(2);
    expect(said).toContain('no argument but --keep');
    expect(readdirSync(folder)).toEqual([]);
  }),
);
