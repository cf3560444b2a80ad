// A real process whose wall clock is set by an hour while it sleeps and while it times a tool.

import { execFile } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { expect } from 'vitest';
import { verifies } from '../verifies.js';

const run = promisify(execFile);
const pathOf = (name: string): string => fileURLToPath(new URL(`fixtures/${name}`, import.meta.url));
const HOUR = 3_600_000;

for (const by of [-HOUR, HOUR]) {
  verifies(
    'time.monotonic',
    `a process whose wall clock is set by ${by} ms sleeps and times out as before`,
    async () => {
      const args = ['--import', pathOf('wall-clock.mjs'), pathOf('jumps.mjs'), String(by)];
      const { stdout } = await run(process.execPath, args, { timeout: 60_000 });
      const [nap, hang] = JSON.parse(stdout);
      expect(nap).toMatchObject({ status: 'ok', early: false, ordered: true });
      expect(hang).toMatchObject({ status: 'error', code: 'TIMEOUT', early: false, ordered: true });
      for (const { durationMs } of [nap, hang]) {
        expect(durationMs).toBeGreaterThanOrEqual(by > 0 ? by : 240);
        expect(durationMs).toBeLessThan(by > 0 ? 2 * by : HOUR);
      }
    },
  );
}
