// The versions in Rondo and in the AI SDK, whose packages the repository has. Those in Mastra: compare.proof.test.ts.

import { readFileSync } from 'node:fs';
import { expect } from 'vitest';
import { verifies } from '../../spec/verifies.js';
import { cellOf, countAll, excessesOf, PROGRAMS } from './count.mjs';
import { RESULTS, runProgram } from './run.mjs';

const versions = ['rondo', 'ai-sdk'];

for (const program of PROGRAMS) {
  for (const version of versions) {
    verifies('compare.runs', `${program}: the version for ${version} prints the result`, async () => {
      const output = await runProgram(program, version);
      expect(output.trim().split('\n').at(-1)).toBe(RESULTS[program]);
    });
  }
}

verifies('compare.counts', 'Rondo needs no more lines and no more concepts than a version in the AI SDK', () => {
  const counts = countAll(versions);
  expect(counts).toHaveLength(PROGRAMS.length * versions.length);
  expect(excessesOf(counts)).toEqual([]);
  const readme = readFileSync(new URL('README.md', import.meta.url), 'utf8');
  for (const count of counts)
    expect(readme, `the table has another count of ${count.program}`).toContain(cellOf(count));
});

verifies('compare.counts', 'a version in Rondo that needs more lines or concepts is detected', () => {
  const small = { program: 'a', version: 'ai-sdk', lines: 1, concepts: ['tool'] };
  const large = { program: 'a', version: 'rondo', lines: 2, concepts: ['run', 'tool'] };
  expect(excessesOf([large, small])).toHaveLength(2);
  expect(excessesOf([small]), 'a version that is not counted').toHaveLength(1);
});
