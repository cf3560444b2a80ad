/** Checks of the suite itself: a complete report (section 9 of LSEM), and no requirement beyond LSEM (section 10). */
import { assertThat } from '../assertions.js';
import type { ConformanceCheck } from '../check.js';
import type { LsemDriver } from '../driver.js';
import { type CheckResult, type ConformanceReport, findReportProblems } from '../report.js';

/** The input of a check of the suite itself. */
export interface SuiteRun {
  /** The report so far, with this check as passed. */
  readonly report: ConformanceReport;
  /**
   * The checks that used an optional member of the driver or did not run, except those with results of earlier
   * processes.
   */
  readonly unprovenChecks: readonly ConformanceCheck[];
  /**
   * Runs a check with the required members of the driver, or returns its result with all members, running it if needed.
   */
  rerun(check: ConformanceCheck, members: 'all' | 'required'): Promise<CheckResult>;
}

/** A check of the suite itself, which runs after all others. */
interface SuiteCheck extends Omit<ConformanceCheck, 'run'> {
  run(suiteRun: SuiteRun): Promise<void>;
}

/** Returns a driver of the same runtime with only the required members, and `close`, which no check depends on. */
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

/** The checks of the suite itself. */
export const suiteChecks: readonly SuiteCheck[] = [
  {
    id: 'NEG-01',
    section: '10',
    level: 'IMPLIED',
    title: 'no check requires more than register and run: no protocol, accounts, deployment or user interface',
    async run({ unprovenChecks, rerun }) {
      for (const check of unprovenChecks) {
        const { status, note } = await rerun(check, 'required');
        if (status !== 'fail') continue;
        const complete = await rerun(check, 'all');
        assertThat(
          complete.status === 'fail',
          `${check.id} fails for a driver with only the required members: ${note}`,
        );
      }
    },
  },
  {
    id: 'CNF-01',
    section: '9',
    level: 'MUST',
    title: 'the report lists every check with its status, and the five points',
    async run({ report }) {
      const problems = findReportProblems(report);
      assertThat(problems.length === 0, problems.join('; '));
    },
  },
];
