#!/usr/bin/env node
/** The process around the command line: its streams, its signals, its end. */
import { outputOf } from './output.js';
import { main } from './program.js';
import { report } from './report.js';
import { Terminal } from './terminal.js';
import { exit } from './verb.js';

const { stdin, env } = process;
const [stdout, stderr] = [outputOf(process.stdout), outputOf(process.stderr)];
const terminal = new Terminal({ stdin, stdout, stderr, env, cwd: process.cwd() });

for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) {
  process.on(signal, () => {
    terminal.say(terminal.interrupted?.() ?? 'Interrupted.');
    process.exit(exit.interrupted);
  });
}

const fail = (thrown: unknown): void => {
  void report(thrown, terminal, false)
    .then(() => terminal.flush())
    .then(() => process.exit(exit.fault));
};
process.on('uncaughtException', fail);
process.on('unhandledRejection', fail);

const code = await main(process.argv.slice(2), terminal);
process.exit(await terminal.end(code));
