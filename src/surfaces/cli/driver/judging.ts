/** The process that a driver runs in: it loads the driver, judges the runtime and tells each step to the one that watches. */
import { pathToFileURL } from 'node:url';
import { catalogue } from '../../../conformance/catalogue.js';
import type { LsemDriver } from '../../../conformance/driver.js';
import { judgeBy } from '../../../conformance/judge.js';
import { driverIn } from '../../../conformance/shape.js';
import { exit } from '../verb.js';
import { type Assignment, DRIVER_PROCESS, type Progress } from './messages.js';

/** Judges as it is told, once; resolves when everything was handed over. */
export async function judgeAsTold(): Promise<number> {
  // What the driver starts is no process of a driver.
  delete process.env[DRIVER_PROCESS];
  // Without the one that watches there is nobody to tell.
  process.once('disconnect', () => process.exit(exit.ok));
  const assigned = new Promise<Assignment>((resolve) => process.once('message', (sent) => resolve(sent as Assignment)));
  await tell({ ready: true });
  const { file, options, decided } = await assigned;
  try {
    const driver = await load(file);
    await tell({ loaded: driver.name });
    const report = await judgeBy(catalogue, driver, options, {
      onCheck: (check) => void tell({ check }),
      onResult: (result) => void tell({ result }),
      decided: new Map(decided.map((row) => [row.id, row])),
    });
    await tell({ report });
  } catch (thrown) {
    await tell({ refused: thrown instanceof Error ? thrown.message : String(thrown) });
  }
  return exit.ok;
}

async function load(file: string): Promise<LsemDriver> {
  const module: { readonly [name: string]: unknown } = await import(pathToFileURL(file).href);
  return driverIn(module);
}

function tell(progress: Progress): Promise<void> {
  return new Promise((resolve) => {
    if (process.connected) process.send?.(progress, undefined, undefined, () => resolve());
    else resolve();
  });
}
