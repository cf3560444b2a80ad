// CI adds a JSON report per Node lane; .ci/run sums them.

import { defineConfig } from 'vitest/config';

const lane = process.env.RONDO_NODE_LANE ?? 'default';
const report: [string, { outputFile: string }] = ['json', { outputFile: `.ci/reports/vitest-${lane}.json` }];

export default defineConfig({
  test: {
    include: ['src/**/*.test.ts', 'spec/**/*.test.ts', 'examples/**/*.test.ts', 'bench/**/*.test.ts'],
    pool: 'forks',
    maxWorkers: 2,
    testTimeout: 120_000,
    hookTimeout: 120_000,
    reporters: process.env.CI ? ['default', report] : ['default'],
  },
});
