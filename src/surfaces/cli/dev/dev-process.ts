/**
 * Runs in a child process of `rondo dev`: loads the definitions once, reports them, and continues turns that are due
 * until the parent asks it to stop. Each change of the project starts a new process, so that every module is loaded
 * again, and the turns of the old process keep their definitions.
 */
import type { TurnResult } from '../../../protocol/trace.js';
import { loadLoops, loadSettings } from '../../compose.js';
import { openHost } from '../open-host.js';
import { outcomeLines, summaryLineOf } from '../outcome.js';
import { exitCodes, type Invocation } from '../verb.js';
import { workReportsOf } from '../work-reports.js';
import { DEV_PROCESS_ENV, type DevProgress } from './messages.js';

/** Loads the project and works until it is asked to stop. Returns the exit code. */
export async function runDevProcess({ settingsInput, terminal }: Invocation): Promise<number> {
  // Processes that the project starts must not run as processes of `rondo dev`.
  delete process.env[DEV_PROCESS_ENV];
  const stopped = new AbortController();
  const stop = (): void => stopped.abort();
  process.once('message', stop);
  process.once('disconnect', stop);
  try {
    const settings = await loadSettings(settingsInput);
    const definitions = await loadLoops(settings);
    const loops = definitions.registry.list().map(({ definition: { id, version }, digest, origin: { file } }) => ({
      id,
      version,
      digest,
      ...(file !== undefined && { file }),
    }));
    await send({ loaded: { loops, bad: definitions.badFiles, skipped: definitions.skipped } });
    const { host, close } = await openHost(settings, { definitions, createIfMissing: true }, terminal);
    try {
      const onResult = (result: TurnResult): void => {
        if (result.status !== 'error' && result.status !== 'stopped') return;
        for (const line of [...outcomeLines(result, { cwd: settings.cwd }), summaryLineOf(result)])
          terminal.printToStderr(line);
      };
      const work = host.work({ signal: stopped.signal, onResult, ...workReportsOf(terminal) });
      await Promise.all([work, aborted(stopped.signal)]);
    } finally {
      await close();
    }
  } catch (thrown) {
    await send({ failed: thrown instanceof Error ? thrown.message : String(thrown) });
    await aborted(stopped.signal);
  }
  if (process.connected) process.disconnect();
  return exitCodes.ok;
}

function aborted(signal: AbortSignal): Promise<void> {
  if (signal.aborted) return Promise.resolve();
  // The channel to the parent keeps the event loop alive.
  return new Promise((resolve) => signal.addEventListener('abort', () => resolve(), { once: true }));
}

function send(progress: DevProgress): Promise<void> {
  return new Promise((resolve) => {
    if (process.connected) process.send?.(progress, undefined, undefined, () => resolve());
    else resolve();
  });
}
