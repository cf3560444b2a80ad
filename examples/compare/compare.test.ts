import { readFileSync } from 'node:fs';
import { expect } from 'vitest';
import { verifies } from '../../spec/verifies.js';
import { countAll, INCOMPLETE, PROGRAMS, tableOf, VERSIONS } from './count.mjs';
import { runProgram } from './run.mjs';

const results: Record<string, string> = {
  'smallest-loop': 'Hello Ada',
  'agent-approval': 'Your refund is on its way.',
  'durable-workflow': 'lamp for 5 lamp on Monday',
};

for (const program of PROGRAMS) {
  for (const version of VERSIONS) {
    verifies('compare.runs', `${program}: the version for ${version} prints the result`, async () => {
      const output = await runProgram(program, version);
      expect(output.trim().split('\n').at(-1)).toBe(results[program]);
    });
  }
}

verifies('compare.counts', 'Rondo needs no more lines and no more concepts than a version that does the same', () => {
  const counts = countAll();
  expect(counts).toHaveLength(PROGRAMS.length * VERSIONS.length);
  const others = counts.filter(({ program, version }) => !INCOMPLETE.includes(`${program}/${version}`));
  for (const { program, version, lines, concepts } of others) {
    const rondo = counts.find((count) => count.program === program && count.version === 'rondo');
    expect(rondo?.lines, `lines of ${program}, compared with ${version}`).toBeLessThanOrEqual(lines);
    expect(rondo?.concepts.length, `concepts of ${program}, ${version}`).toBeLessThanOrEqual(concepts.length);
    expect(rondo?.concepts.length).toBeGreaterThan(0);
  }
  const readme = readFileSync(new URL('README.md', import.meta.url), 'utf8');
  expect(readme, 'the table is not what `node examples/compare/count.mjs` prints').toContain(tableOf(counts));
});
