// The part of a process that obeys: it reads one command a line as JSON, and answers with its result or its error.

import { createInterface } from 'node:readline';

/** @param {unknown} report */
export const tell = (report) => process.stdout.write(`${JSON.stringify(report)}\n`);

/** An entry of a session. @param {number} seq @param {unknown} value */
export const entryOf = (seq, value) => ({ seq, at: seq, key: `t/${seq}`, type: 'step.taken', value });

/** Performs each command that arrives, until its input ends. @param {Record<string, (command: any) => unknown>} acts */
export function obey(acts) {
  const lines = createInterface({ input: process.stdin });
  lines.on('line', async (line) => {
    const { n, ...command } = JSON.parse(line);
    try {
      const ok = await acts[command.do](command);
      tell({ n, ok: ok ?? null });
    } catch (thrown) {
      const { name, code, message, data } = thrown ?? {};
      tell({ n, fault: { name, code, message, data } });
    }
  });
  lines.on('close', () => process.exit(0));
  tell({ ready: process.pid });
  return lines;
}
