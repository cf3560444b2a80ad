/**
 * Runs in the child process of a driver: loads the driver, runs the checks and reports each step to the parent process.
 */
import { pathToFileURL } from 'node:url';
import { catalogue } from '../../../conformance/catalogue.js';
import type { LsemDriver } from '../../../conformance/driver.js';
import { driverFromModule } from '../../../conformance/driver-shape.js';
import { runChecks } from '../../../conformance/run-suite.js';
import { exitCodes } from '../verb.js';
import { DRIVER_PROCESS_ENV, type DriverAssignment, type DriverProgress } from './messages.js';

/** Receives one assignment, runs its checks and sends the report. Resolves when all messages are sent. */
export async function runDriverProcess(): Promise<number> {
  // Processes that the driver starts must not run as driver processes.
  delete process.env[DRIVER_PROCESS_ENV];
  // Without the parent process the report has no receiver.
  process.once('disconnect', () => process.exit(exitCodes.ok));
  const assignment = new Promise<DriverAssignment>((resolve) =>
    process.once('message', (message) => resolve(message as DriverAssignment)),
  );
  await sendProgress({ ready: true });
  const { file, options, decided } = await assignment;
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
