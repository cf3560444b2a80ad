/** The process that a driver runs in: it loads the driver, judges the runtime and tells each step to the one that watches. */
import { pathToFileURL } from 'node:url';
import { catalogue } from '../../../conformance/catalogue.js';
import type { LsemDriver } from '../../../conformance/driver.js';
import { driverFromModule } from '../../../conformance/driver-shape.js';
import { runChecks } from '../../../conformance/run-suite.js';
import { exitCodes } from '../verb.js';
import { DRIVER_PROCESS_ENV, type DriverAssignment, type DriverProgress } from './messages.js';

/** Judges as it is told, once; resolves when everything was handed over. */
export async function runDriverProcess(): Promise<number> {
  // What the driver starts is no process of a driver.
  delete process.env[DRIVER_PROCESS_ENV];
  // Without the one that watches there is nobody to tell.
  process.once('disconnect', () => process.exit(exitCodes.ok));
  const assigned = new Promise<DriverAssignment>((resolve) =>
    process.once('message', (sent) => resolve(sent as DriverAssignment)),
  );
  await sendProgress({ ready: true });
  const { file, options, decided } = await assigned;
  try {
    const driver = await loadDriver(file);
    await sendProgress({ loaded: driver.name });
    const report = await runChecks(catalogue, driver, options, {
      onCheck: (check) => void sendProgress({ check }),
      onResult: (result) => void sendProgress({ result }),
      knownResults: new Map(decided.map((row) => [row.id, row])),
    });
    await sendProgress({ report });
  } catch (thrown) {
    await sendProgress({ refused: thrown instanceof Error ? thrown.message : String(thrown) });
  }
  return exitCodes.ok;
}

async function loadDriver(file: string): Promise<LsemDriver> {
  const module: { readonly [name: string]: unknown } = await import(pathToFileURL(file).href);
  return driverFromModule(module);
}

function sendProgress(progress: DriverProgress): Promise<void> {
  return new Promise((resolve) => {
    if (process.connected) process.send?.(progress, undefined, undefined, () => resolve());
    else resolve();
  });
}
