/** `conformance`: holds this runtime against LSEM, or with --driver any other. */
import { existsSync } from 'node:fs';
import { resolve } from 'node:path';
import type { JudgeOptions } from '../../../conformance/judge.js';
import type { ConformanceReport } from '../../../conformance/report.js';
import { suiteParts } from '../../compose.js';
import { UsageError } from '../../settings.js';
import { DRIVER_PROCESS } from '../driver/messages.js';
import type { Terminal } from '../terminal.js';
import { type Act, exit, type Options, textOf } from '../verb.js';

export const conformance: Act = async ({ options, terminal, json, asked }) => {
  if (terminal.streams.env[DRIVER_PROCESS] === '1' && process.send !== undefined) {
    return (await import('../driver/judging.js')).judgeAsTold();
  }
  const judging = optionsOf(options);
  const driver = textOf(options.driver);
  const report =
    driver === undefined ? await ofRondo(judging) : await ofDriver(resolve(asked.cwd, driver), judging, terminal);
  const [{ renderConformance }, { verdictOf }] = await Promise.all([
    import('../../../conformance/render.js'),
    import('../../../conformance/report.js'),
  ]);
  if (json) await terminal.json(report);
  else await terminal.print(renderConformance(report, terminal.look()));
  const good = judging.only === undefined ? verdictOf(report).good : report.summary.failed === 0;
  return good ? exit.ok : exit.unverified;
};

function optionsOf(options: Options): JudgeOptions {
  const only = textOf(options.only)
    ?.split(/[\s,]+/)
    .filter((id) => id !== '');
  const timeout = textOf(options.timeout);
  const timeoutMs = Number(timeout ?? 10_000);
  if (!/^\d+$/.test(timeout ?? '1') || timeoutMs < 1 || timeoutMs > 86_400_000) {
    throw new UsageError(`--timeout is ${timeout}; give whole milliseconds, from 1 to 86400000.`);
  }
  return { timeoutMs, ...(only !== undefined && { only }) };
}

async function ofRondo(options: JudgeOptions): Promise<ConformanceReport> {
  const [{ judge }, { rondoDriver }] = await Promise.all([
    import('../../../conformance/judge.js'),
    import('../../../conformance/rondo.js'),
  ]);
  return judge(rondoDriver(await suiteParts()), options).catch((thrown) => {
    throw thrown instanceof TypeError ? new UsageError(thrown.message) : thrown;
  });
}

/** The file runs as code: whoever names it on the command line trusts it, as a program that is started. */
async function ofDriver(file: string, options: JudgeOptions, terminal: Terminal): Promise<ConformanceReport> {
  if (!existsSync(file)) throw new UsageError(`There is no driver at ${file}; --driver names an ES module.`);
  const { judgeDriver } = await import('../driver/watch.js');
  try {
    return await judgeDriver({
      file,
      options,
      onStart: (stop) => {
        terminal.interrupted = () => {
          stop();
          return 'Interrupted: nothing was reported.';
        };
      },
    });
  } finally {
    terminal.interrupted = undefined;
  }
}
