#!/usr/bin/env node
/** The process around the command line: its streams, its signals, its end. */
import { main } from './program.js';
import { report } from './report.js';
import { Terminal } from './terminal.js';
import { exit } from './verb.js';

const { stdin, stdout, stderr, env } = process;
const terminal = new Terminal({ stdin, stdout, stderr, env, cwd: process.cwd() });

// Whoever reads has had enough: that is no failure.
stdout.on('error', () => process.exit(exit.ok));
stderr.on('error', () => undefined);

for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) {
  process.on(signal, () => {
    terminal.say(terminal.interrupted?.() ?? 'Interrupted.');
    process.exit(exit.interrupted);
  });
}

const fail = (thrown: unknown): void => {
  void report(thrown, terminal, false).then(() => process.exit(exit.fault));
};
process.on('uncaughtException', fail);
process.on('unhandledRejection', fail);

const code = await main(process.argv.slice(2), terminal);
await terminal.flush();
process.exit(code);
