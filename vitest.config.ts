// CI adds a JSON report per Node lane; .ci/run sums them.

import { configDefaults, defineConfig } from 'vitest/config';

const lane = process.env.RONDO_NODE_LANE ?? 'default';
const report: [string, { outputFile: string }] = ['json', { outputFile: `.ci/reports/vitest-${lane}.json` }];

/**
 * Tests of the rings without adapters: they start no process and leave nothing behind in their own. They share
 * processes, so that not every file loads the same modules again.
 */
const SHARING = ['base', 'host', 'kernel', 'layers', 'loops', 'policy', 'protocol', 'views'].map(
  (ring) => `src/${ring}/**/*.test.ts`,
);
/** Tests that measure CPU time or memory, which depend on what else a process has loaded. */
const MEASURING = [
  'src/base/redact.test.ts',
  'src/layers/filter.test.ts',
  'src/loops/model-call/generate.test.ts',
  'src/loops/plan/condition-bounds.test.ts',
];
const ALL = ['src', 'spec', 'examples', 'bench'].map((directory) => `${directory}/**/*.test.ts`);

const project = (name: string, include: string[], exclude: readonly string[], isolate: boolean) => ({
  extends: true as const,
  test: { name, include, exclude: [...configDefaults.exclude, ...exclude], isolate },
});

export default defineConfig({
  test: {
    projects: [
      project('shared process', SHARING, MEASURING, false),
      project('own process', ALL, SHARING, true),
      project('measurements', MEASURING, [], true),
    ],
    pool: 'forks',
    maxWorkers: 2,
    testTimeout: 120_000,
    hookTimeout: 120_000,
    reporters: process.env.CI ? ['default', report] : ['default'],
  },
});
