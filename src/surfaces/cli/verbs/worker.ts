/** `rondo worker`: continues the turns that are due, until it is interrupted or, with `--once`, until nothing is due. */
import type { WorkProblem } from '../../../host/worker.js';
import type { TurnResult } from '../../../protocol/trace.js';
import { loadSettings } from '../../compose.js';
import { UsageError } from '../../settings.js';
import { openHostForRunning } from '../open-host.js';
import { outcomeLines, summaryLineOf } from '../outcome.js';
import { sanitizeText } from '../terminal-text.js';
import { exitCodes, textOption, type VerbHandler } from '../verb.js';

const MAX_CONCURRENCY = 1000;

/** Handles `rondo worker`. */
export const worker: VerbHandler = async ({ options, settingsInput, terminal, json }) => {
  const concurrency = concurrencyOf(textOption(options.concurrency));
  const once = options.once === true;
  const { host, close } = await openHostForRunning(await loadSettings(settingsInput), terminal);
  const controller = new AbortController();
  const stop = (): void => controller.abort();
  for (const name of ['SIGTERM', 'SIGINT'] as const) process.once(name, stop);
  const onResult = (result: TurnResult): void => {
    if (json) void terminal.printJsonLines([result]);
    else for (const line of [...outcomeLines(result), summaryLineOf(result)]) terminal.printToStderr(line);
  };
  const onProblem = ({ turnId, code, message }: WorkProblem): void =>
    terminal.printToStderr(`${sanitizeText(turnId)} is not continued here. ${code}: ${sanitizeText(message)}`);
  if (!once) terminal.printToStderr('Working. Ctrl-C stops after the current steps; turns continue elsewhere.');
  try {
    const working = host.work({ concurrency, once, onResult, onProblem, signal: controller.signal });
    await Promise.race([working, aborted(controller.signal)]);
    return controller.signal.aborted && !once ? exitCodes.interrupted : exitCodes.ok;
  } finally {
    for (const name of ['SIGTERM', 'SIGINT'] as const) process.off(name, stop);
    await host.close();
    await close();
  }
};

function aborted(signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => signal.addEventListener('abort', () => resolve()));
}

function concurrencyOf(text: string | undefined): number {
  const concurrency = text === undefined ? 16 : Number(text);
  if (Number.isInteger(concurrency) && concurrency >= 1 && concurrency <= MAX_CONCURRENCY) return concurrency;
  throw new UsageError(`--concurrency must be a whole number from 1 to ${MAX_CONCURRENCY}.`);
}
