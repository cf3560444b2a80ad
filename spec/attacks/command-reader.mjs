// Reads commands from stdin, one JSON document per line, runs each, and reports its result or error on stdout.

import { createInterface } from 'node:readline';

/** Writes a report as one line of JSON. @param {unknown} report */
export const writeReport = (report) => process.stdout.write(`${JSON.stringify(report)}\n`);

/** Returns an entry of a session. @param {number} seq @param {unknown} value */
export const entryOf = (seq, value) => ({ seq, at: seq, key: `t/${seq}`, type: 'step.taken', value });

/** Runs each command from stdin until the input ends. @param {Record<string, (command: any) => unknown>} commands */
export function readCommands(commands) {
  const lines = createInterface({ input: process.stdin });
  lines.on('line', async (line) => {
    const { n, ...command } = JSON.parse(line);
    try {
      const ok = await commands[command.do](command);
      writeReport({ n, ok: ok ?? null });
    } catch (thrown) {
      const { name, code, message, data } = thrown ?? {};
      writeReport({ n, fault: { name, code, message, data } });
    }
  });
  lines.on('close', () => process.exit(0));
  writeReport({ ready: process.pid });
  return lines;
}
