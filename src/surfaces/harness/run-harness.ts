/** Runs the cases of a harness, one after another, each on a store of its own. */
import type { TurnOptions } from '../../host/host.js';
import type { ReceiptVerdict } from '../../protocol/receipt.js';
import type { Difference } from './differences.js';
import type { Harness, HarnessCase } from './harness-case.js';
import { receiptsOf } from './observe.js';
import type { ReceiptDirectory } from './receipt-directory.js';
import { runHostedCase } from './run-hosted-case.js';
import { type CaseObservation, runTurnCase } from './run-turn-case.js';
import { type HarnessContext, type ScratchHost, withScratchHost } from './scratch-host.js';

/** The report of a case. */
export interface CaseReport {
  readonly name: string;
  /** True if nothing differs. */
  readonly ok: boolean;
  readonly status: string;
  /** Why it stopped, or the message of its error. */
  readonly reason?: string | undefined;
  readonly differences: readonly Difference[];
  /** The ids of the receipts of its turns. */
  readonly receipts: readonly string[];
  /** The verification of its store. */
  readonly verdict: ReceiptVerdict | undefined;
  readonly durationMs: number;
}

/** The report of a harness. */
export interface HarnessReport {
  /** True if there are cases, and all of them are ok. */
  readonly ok: boolean;
  readonly cases: readonly CaseReport[];
}

/** Options of `runHarness`. */
export interface HarnessOptions {
  /** Where the receipts of the cases are written. @default nowhere */
  readonly receiptDirectory?: ReceiptDirectory | undefined;
  /** Called before each case. Returns the listener of the events of its turn. */
  readonly onCase?: (item: HarnessCase, index: number) => TurnOptions['onEvent'] | undefined;
  /** Called after each case. */
  readonly onReport?: (report: CaseReport) => void;
  /** A monotonic clock in ms. */
  readonly elapsed: () => number;
}

/** Runs all cases. A case that fails does not keep later ones from running. */
export async function runHarness(
  { cases }: Harness,
  context: HarnessContext,
  options: HarnessOptions,
): Promise<HarnessReport> {
  const reports: CaseReport[] = [];
  for (const [index, item] of cases.entries()) {
    const startedAt = options.elapsed();
    const onEvent = options.onCase?.(item, index);
    const observation = await withScratchHost(item, context, async (scratch) => {
      const found = await runCase(item, scratch, onEvent);
      await options.receiptDirectory?.add(item.name, receiptsOf(scratch.host), await scratch.keys());
      return found;
    });
    const durationMs = Math.round(options.elapsed() - startedAt);
    const ok = observation.differences.length === 0;
    const report: CaseReport = { name: item.name, ok, ...observation, durationMs };
    options.onReport?.(report);
    reports.push(report);
  }
  // guard: harness-without-cases-fails
  return { ok: reports.length > 0 && reports.every(({ ok }) => ok), cases: reports };
}

function runCase(item: HarnessCase, scratch: ScratchHost, onEvent: TurnOptions['onEvent']): Promise<CaseObservation> {
  return item.kind === 'hosted' ? runHostedCase(item, scratch, onEvent) : runTurnCase(item, scratch, onEvent);
}
