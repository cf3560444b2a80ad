// The tiers of tests are projects, chosen by the suffix of the file: `npm test` runs the first four, `.ci/run` also
// the processes, `npm run proof` everything. CI adds a JSON report per run; .ci/run sums them.

import { configDefaults, defineConfig } from 'vitest/config';

const lane = process.env.RONDO_TEST_LANE ?? 'default';
const report: [string, { outputFile: string }] = ['json', { outputFile: `.ci/reports/vitest-${lane}.json` }];

/**
 * Tests that measure processor time, find all stores of their process, or replace its timers: they depend on what else a
 * process does, or it on them.
 */
const ISOLATED = [
  'spec/approvals/files.test.ts',
  'spec/cli/progress.test.ts',
  'src/adapters/toolbox/**/*.test.ts',
  'src/base/redact.test.ts',
  'src/journal/store-files.test.ts',
  'src/layers/filter.test.ts',
  'src/loops/model-call/generate.test.ts',
  'src/loops/plan/condition-bounds.test.ts',
  'src/surfaces/cli/live-tree.test.ts',
];
/** Tests that break a copy of the library or of a runtime in the proof. */
const TWINS = ['spec/guards/**/*.test.ts', 'spec/conformance/mutants.test.ts'];
/** Tests whose limits of processor time are close: they run alone, because a shared core is slower. */
const ALONE = ['spec/fuzz/definitions.test.ts'];
const below = (suffix: string): string[] =>
  ['src', 'spec', 'examples', 'bench'].map((directory) => `${directory}/**/*${suffix}`);
/** Tests that start processes, servers or browsers. */
const PROCESS = below('.process.test.ts');
/** Tests that only `npm run proof` runs. */
const PROOF = below('.proof.test.ts');

const project = (name: string, include: string[], exclude: readonly string[], isolate: boolean) => ({
  extends: true as const,
  test: { name, include, exclude: [...configDefaults.exclude, ...exclude], isolate },
});

const alone = (name: string, include: string[]) => ({
  extends: true as const,
  test: { name, include, maxWorkers: 1, sequence: { groupOrder: 1 } },
});

export default defineConfig({
  test: {
    projects: [
      project('in-process', below('.test.ts'), [...TWINS, ...ISOLATED, ...ALONE, ...PROCESS, ...PROOF], false),
      project('twins', TWINS, PROCESS, false),
      project('isolated', ISOLATED, [...PROCESS, ...PROOF], true),
      alone('alone', ALONE),
      project('process', PROCESS, [], false),
      project('proof', PROOF, [], false),
    ],
    globalSetup: 'spec/support/temporary-folder.ts',
    pool: 'forks',
    maxWorkers: 2,
    testTimeout: 120_000,
    hookTimeout: 120_000,
    reporters: process.env.CI ? ['default', report] : ['default'],
  },
});
