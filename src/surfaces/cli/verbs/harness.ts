/** `rondo harness`: runs the declared cases of a directory, and compares what happened with what they expect. */
import { rmSync, statSync } from 'node:fs';
import { resolve } from 'node:path';
import { trustPredicateOf } from '../../authority.js';
import { loadSettings } from '../../compose.js';
import type { Harness } from '../../harness/harness-case.js';
import { loadHarnessDefinitions } from '../../harness/harness-definitions.js';
import { readHarness } from '../../harness/read-harness.js';
import { ReceiptDirectory } from '../../harness/receipt-directory.js';
import { type HarnessReport, runHarness } from '../../harness/run-harness.js';
import type { HarnessContext } from '../../harness/scratch-host.js';
import { explicitLocations, UsageError } from '../../settings.js';
import { warnBadFiles } from '../definitions.js';
import { renderCase, renderSummary } from '../render-harness.js';
import type { Terminal } from '../terminal.js';
import { createColors, sanitizeText } from '../terminal-text.js';
import { TurnProgress } from '../turn-progress.js';
import { exitCodes, textOption, type VerbHandler } from '../verb.js';

/** Handles `rondo harness`. */
export const harness: VerbHandler = async ({ args, options, settingsInput, terminal, json }) => {
  const settings = await loadSettings(settingsInput);
  const directory = resolve(settings.cwd, String(args[0]));
  if (statSync(directory, { throwIfNoEntry: false })?.isDirectory() !== true)
    throw new UsageError(`There is no directory ${directory}.`);
  const declared = await readHarness(directory, settings);
  const isExplicit = explicitLocations(settingsInput).loops;
  const context = await loadHarnessDefinitions(directory, declared, settings, isExplicit);
  warnBadFiles(context.definitions.badFiles, terminal);
  const target = textOption(options.receiptDir);
  const receiptDirectory =
    target === undefined
      ? undefined
      : await ReceiptDirectory.create(resolve(settings.cwd, target), trustPredicateOf(settings.authority));
  const report = await runWithProgress(declared, context, { receiptDirectory, terminal, json });
  if (json) await terminal.printJson(report);
  else await terminal.print(renderSummary(report, createColors(terminal.displayOf().color)));
  return report.ok ? exitCodes.ok : exitCodes.failed;
};

interface OutputOptions {
  readonly receiptDirectory: ReceiptDirectory | undefined;
  readonly terminal: Terminal;
  readonly json: boolean;
}

/** Runs the cases, prints each when it has ended, and shows on a terminal what the current one does. */
async function runWithProgress(
  declared: Harness,
  context: HarnessContext,
  { receiptDirectory, terminal, json }: OutputOptions,
): Promise<HarnessReport> {
  const isShown = terminal.isProgressEnabled && terminal.streams.stderr.isTTY === true;
  const colors = createColors(terminal.displayOf().color);
  let progress: TurnProgress | undefined;
  let scratch: string | undefined;
  const prints: Promise<void>[] = [];
  terminal.onInterrupt = () => {
    progress?.end();
    if (scratch !== undefined) rmSync(scratch, { recursive: true, force: true });
    return 'Interrupted. The remaining cases were not run.';
  };
  const onDirectory = (directory: string | undefined): void => {
    scratch = directory;
  };
  try {
    return await runHarness(
      declared,
      { ...context, onDirectory },
      {
        receiptDirectory,
        elapsed: () => performance.now(),
        onCase: ({ name }, index) => {
          const place = `${index + 1}/${declared.cases.length} ${sanitizeText(name)}`;
          const show = (text: string | undefined): void =>
            terminal.showProgress(text === undefined ? undefined : `${place}  ${text}`);
          progress = isShown ? new TurnProgress(show, Date.now) : undefined;
          return (event) => progress?.apply(event);
        },
        onReport: (report) => {
          progress?.end();
          if (!json) prints.push(terminal.print(renderCase(report, colors)));
        },
      },
    );
  } finally {
    progress?.end();
    terminal.onInterrupt = undefined;
    await Promise.all(prints);
  }
}
