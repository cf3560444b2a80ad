/** `rondo worker`: continues the turns that are due, until it is interrupted or, with `--once`, until nothing is due. */
import type { TurnResult } from '../../../protocol/trace.js';
import { loadSettings } from '../../compose.js';
import { UsageError } from '../../settings.js';
import { openHostForRunning } from '../open-host.js';
import { outcomeLines, summaryLineOf } from '../outcome.js';
import { exitCodes, textOption, type VerbHandler } from '../verb.js';
import { workReportsOf } from '../work-reports.js';

const MAX_CONCURRENCY = 1000;

/** Handles `rondo worker`. */
export const worker: VerbHandler = async ({ options, settingsInput, terminal, json }) => {
  const concurrency = concurrencyOf(textOption(options.concurrency));
  const once = options.once === true;
  const { host, close } = await openHostForRunning(await loadSettings(settingsInput), terminal);
  let closing: Promise<void> | undefined;
  terminal.onInterrupt = async () => {
    closing = host.close().then(close);
    await closing;
    return 'Stopped. Turns that were running continue in the next worker.';
  };
  let wasIdle = true;
  const onResult = (result: TurnResult): void => {
    wasIdle = false;
    if (json) void terminal.printJsonLines([result]);
    else
      for (const line of [
        ...outcomeLines(result, { cwd: settingsInput.cwd, continuesTimers: !once }),
        summaryLineOf(result),
      ])
        terminal.printToStderr(line);
  };
  const reports = workReportsOf(terminal, () => {
    wasIdle = false;
  });
  if (!once) terminal.printToStderr('Working on turns that are due. Ctrl-C stops after the current effects.');
  try {
    await host.work({ concurrency, once, onResult, ...reports });
    if (once && wasIdle && !json && closing === undefined) terminal.printToStderr('Nothing was due.');
    return closing === undefined ? exitCodes.ok : exitCodes.interrupted;
  } finally {
    terminal.onInterrupt = undefined;
    await (closing ?? close());
  }
};

function concurrencyOf(text: string | undefined): number {
  const concurrency = text === undefined ? 16 : Number(text);
  if (Number.isInteger(concurrency) && concurrency >= 1 && concurrency <= MAX_CONCURRENCY) return concurrency;
  throw new UsageError(`--concurrency must be a whole number from 1 to ${MAX_CONCURRENCY}.`);
}
