/** `rondo conformance`: checks this runtime, or with --driver another one, against LSEM. */
import { existsSync } from 'node:fs';
import { resolve } from 'node:path';
import type { ConformanceReport } from '../../../conformance/report.js';
import type { ConformanceOptions } from '../../../conformance/run-suite.js';
import { conformanceDeps } from '../../compose.js';
import { UsageError } from '../../settings.js';
import { DRIVER_PROCESS_ENV } from '../driver/messages.js';
import type { Terminal } from '../terminal.js';
import { exitCodes, textOption, type VerbHandler, type VerbOptions } from '../verb.js';

/** Handles `rondo conformance`. */
export const conformance: VerbHandler = async ({ options, terminal, json, settingsInput }) => {
  if (terminal.streams.env[DRIVER_PROCESS_ENV] === '1' && process.send !== undefined) {
    return (await import('../driver/driver-process.js')).runDriverProcess();
  }
  const suiteOptions = suiteOptionsOf(options);
  const driver = textOption(options.driver);
  const report =
    driver === undefined
      ? await judgeRondo(suiteOptions)
      : await judgeExternalDriver(resolve(settingsInput.cwd, driver), suiteOptions, terminal);
  const [{ renderConformance }, { conformanceVerdict }] = await Promise.all([
    import('../../../conformance/render.js'),
    import('../../../conformance/report.js'),
  ]);
  if (json) await terminal.printJson(report);
  else await terminal.print(renderConformance(report, terminal.displayOf()));
  const isConformant = suiteOptions.only === undefined ? conformanceVerdict(report).good : report.summary.failed === 0;
  return isConformant ? exitCodes.ok : exitCodes.unverified;
};

function suiteOptionsOf(options: VerbOptions): ConformanceOptions {
  const only = textOption(options.only)
    ?.split(/[\s,]+/)
    .filter((id) => id !== '');
  const timeout = textOption(options.timeout);
  const timeoutMs = Number(timeout ?? 10_000);
  if (!/^\d+$/.test(timeout ?? '1') || timeoutMs < 1 || timeoutMs > 86_400_000) {
    throw new UsageError(`--timeout ${timeout}: must be a whole number of milliseconds from 1 to 86400000.`);
  }
  return { timeoutMs, ...(only !== undefined && { only }) };
}

async function judgeRondo(options: ConformanceOptions): Promise<ConformanceReport> {
  const [{ checkConformance }, { rondoDriver }] = await Promise.all([
    import('../../../conformance/run-suite.js'),
    import('../../../conformance/rondo.js'),
  ]);
  return checkConformance(rondoDriver(await conformanceDeps()), options).catch((thrown) => {
    throw thrown instanceof TypeError ? new UsageError(thrown.message) : thrown;
  });
}

/** Judges the driver in a file. The file runs as code: naming it on the command line is consent, as for any program. */
async function judgeExternalDriver(
  file: string,
  options: ConformanceOptions,
  terminal: Terminal,
): Promise<ConformanceReport> {
  if (!existsSync(file)) throw new UsageError(`There is no driver ${file}; --driver must be the path of an ES module.`);
  const { checkDriver } = await import('../driver/check-driver.js');
  try {
    return await checkDriver({
      file,
      options,
      onStart: (stop) => {
        terminal.onInterrupt = () => {
          stop();
          return 'Interrupted. There is no report.';
        };
      },
    });
  } finally {
    terminal.onInterrupt = undefined;
  }
}
