#!/usr/bin/env node
/** The entry point of the `rondo` process: its streams, signals and exit code. */
import { reportError } from './error-report.js';
import { createOutput } from './output.js';
import { runCommandLine } from './program.js';
import { Terminal } from './terminal.js';
import { exitCodes } from './verb.js';

const { stdin, env } = process;
const [stdout, stderr] = [createOutput(process.stdout), createOutput(process.stderr)];
const terminal = new Terminal({ stdin, stdout, stderr, env, cwd: process.cwd() });

const exitInterrupted = (message: string): never => {
  terminal.printToStderr(message);
  process.exit(exitCodes.interrupted);
};
let isInterrupted = false;
for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) {
  process.on(signal, () => {
    const cleanUp = isInterrupted ? undefined : terminal.onInterrupt;
    isInterrupted = true;
    const message = cleanUp?.() ?? 'Interrupted.';
    if (typeof message === 'string') exitInterrupted(message);
    else void message.then(exitInterrupted, fail);
  });
}

const fail = (thrown: unknown): void => {
  void reportError(thrown, terminal, false)
    .then(() => terminal.flush())
    .then(() => process.exit(exitCodes.fault));
};
process.on('uncaughtException', fail);
process.on('unhandledRejection', fail);

process.exit(await runCommandLine(process.argv.slice(2), terminal));
