// The proof leaves nothing out, and its table shows what its steps found.

import { readdirSync } from 'node:fs';
import { expect } from 'vitest';
import { proofParts } from '../../scripts/proof-parts.mjs';
import { proofTable } from '../../scripts/proof-table.mjs';
import { verifies } from '../verifies.js';
import { absolute, exists, readText } from './tree.js';

const steps = Object.values(proofParts(7)).flatMap((part) => part.steps);
const programs = steps.filter(({ runner }) => runner === 'node').map(({ command }) => command[0] ?? '');

verifies('house.proof', 'the proof runs every program of the campaigns and the attacks', () => {
  const found = ['spec/campaigns', 'spec/attacks'].flatMap((folder) =>
    readdirSync(absolute(folder))
      .map((name) => `${folder}/${name}`)
      .filter((file) => file.endsWith('.mjs') && /\bparseArgs\(|^await runAttacks\(/m.test(readText(file)))
      .filter((file) => !file.endsWith('/runner.mjs')),
  );
  expect(found.length).toBeGreaterThan(12);
  expect(found.filter((file) => !programs.includes(file))).toEqual([]);
  expect(programs.filter((file) => !exists(file))).toEqual([]);
});

verifies('house.proof', 'the proof runs the projects of all tests on both Nodes, and those of broken twins', () => {
  const config = readText('vitest.config.ts');
  const projects = [...config.matchAll(/^ +(?:project|alone)\('([\w-]+)'/gm)].map(([, name]) => name);
  const run = (newer: boolean) =>
    steps
      .filter((step) => step.runner === 'vitest' && step.newer === newer)
      .flatMap(({ command }) => command.filter((word) => word !== '--project'));
  expect(projects).toContain('twins');
  expect(run(false).sort()).toEqual([...projects].sort());
  expect(run(true).sort()).toEqual(projects.filter((name) => name !== 'proof').sort());
});

verifies('house.proof', 'a row of the table has the counts of a summary, its violations, and the verdict', () => {
  const summary = JSON.stringify({ seed: 7, kills: 3, mode: 'mixed', violations: ['lost | turn'], faults: { a: 1 } });
  const row = (ok: boolean, result: string) => ({
    part: 'kills',
    name: 'node a.mjs',
    result: { ok, ms: 61_000, result },
  });
  const [, , passed, failed] = proofTable([row(true, '12 passed'), row(false, summary)]).split('\n');
  expect(passed).toBe('| kills | `node a.mjs` | passed | 1 min 01 s | 12 passed |');
  expect(failed).toBe('| kills | `node a.mjs` | FAILED | 1 min 01 s | seed 7, kills 3, violations 1 |');
});
