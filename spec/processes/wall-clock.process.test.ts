// A real process whose wall clock is set back or forward by an hour while a turn sleeps or a tool is timed.

import { execFile } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { expect } from 'vitest';
import { verifies } from '../verifies.js';

const run = promisify(execFile);
const pathOf = (name: string): string => fileURLToPath(new URL(`fixtures/${name}`, import.meta.url));
const HOUR = 3_600_000;

for (const offsetMs of [-HOUR, HOUR]) {
  verifies(
    'time.monotonic',
    `a sleep and a timeout take the same time although the wall clock is set by ${offsetMs} ms`,
    async () => {
      const args = ['--import', pathOf('wall-clock.mjs'), pathOf('jumps.mjs'), String(offsetMs)];
      const { stdout } = await run(process.execPath, args, { timeout: 60_000 });
      const [nap, hang] = JSON.parse(stdout);
      expect(nap).toMatchObject({ status: 'ok', early: false, ordered: true });
      expect(hang).toMatchObject({ status: 'error', code: 'TIMEOUT', early: false, ordered: true });
      for (const { durationMs } of [nap, hang]) {
        expect(durationMs).toBeGreaterThanOrEqual(offsetMs > 0 ? offsetMs : 240);
        expect(durationMs).toBeLessThan(offsetMs > 0 ? 2 * offsetMs : HOUR);
      }
    },
  );
}
