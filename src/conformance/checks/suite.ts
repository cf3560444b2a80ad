/** What the suite owes: a complete report (section 9), and no demand beyond the text (section 10). */

import { assertThat } from '../assertions.js';
import type { ConformanceCheck } from '../check.js';
import type { LsemDriver } from '../driver.js';
import { type CheckResult, type ConformanceReport, findReportProblems } from '../report.js';

/** What a check of the suite itself looks at. */
export interface SuiteRun {
  /** The report as it stands, this check taken for passed. */
  readonly report: ConformanceReport;
  /** The checks not yet seen to pass with the required members of a driver alone. */
  readonly unprovenChecks: readonly ConformanceCheck[];
  /** Judges one check once more, or first, on the driver as it is, or on its required members alone. */
  rerun(check: ConformanceCheck, members: 'all' | 'required'): Promise<CheckResult>;
}

/** A check over the judgement, made when all others are done. */
export interface SuiteCheck extends Omit<ConformanceCheck, 'run'> {
  run(judgement: SuiteRun): Promise<void>;
}

/** The same runtime behind the required members of the interface only; closing is left, since no check asks for it. */
export function withRequiredMembersOnly(driver: LsemDriver): LsemDriver {
  const { profile } = driver;
  const { echo, failing, unknown } = profile.tool;
  return {
    name: driver.name,
    profile: {
      prompt: (pieces) => profile.prompt(pieces),
      backend: profile.backend,
      tool: { echo, failing, unknown },
      path: profile.path,
    },
    async open() {
      const runtime = await driver.open();
      return {
        register: (definition) => runtime.register(definition),
        run: (loopId, input, onEvent) => runtime.run(loopId, input, onEvent),
        close: () => runtime.close?.(),
      };
    },
  };
}

export const suiteChecks: readonly SuiteCheck[] = [
  {
    id: 'NEG-01',
    section: '10',
    level: 'IMPLIED',
    title: 'no check asks for more than register and run: no wire, no accounts, no deployment, no page',
    async run({ unprovenChecks, rerun }) {
      for (const check of unprovenChecks) {
        const { status, note } = await rerun(check, 'required');
        if (status !== 'fail') continue;
        const whole = await rerun(check, 'all');
        assertThat(whole.status === 'fail', `${check.id} fails where a driver has the required members only: ${note}`);
      }
    },
  },
  {
    id: 'CNF-01',
    section: '9',
    level: 'MUST',
    title: 'the report lists every check with its status, and the five points',
    async run({ report }) {
      const faults = findReportProblems(report);
      assertThat(faults.length === 0, faults.join('; '));
    },
  },
];
