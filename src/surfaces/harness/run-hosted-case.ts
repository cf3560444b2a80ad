/** Runs a case with a hosted loop. */
import { type Difference, differenceOf } from './differences.js';
import type { HostedCase } from './harness-case.js';
import { verdictOf } from './observe.js';
import type { CaseObservation } from './run-turn-case.js';
import type { ScratchHost } from './scratch-host.js';

/** Runs the turns of a hosted loop until it stops or nothing is left to answer, and compares what happened. */
export async function runHostedCase(_item: HostedCase, { host }: ScratchHost): Promise<CaseObservation> {
  // guard: hosted-case-never-passes
  const differences: readonly Difference[] = [differenceOf('/host', 'a run', 'hosted loops are not available')];
  return { status: 'error', differences, receipts: [], verdict: await verdictOf(host) };
}
