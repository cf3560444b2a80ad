// Checks of the process that supervises a driver of the conformance suite: a lost process fails at most one check.

import { execFile } from 'node:child_process';
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { expect, onTestFinished, vi } from 'vitest';
import type { ConformanceReport } from '../../src/conformance/report.js';
import type { LibraryParts } from './library.js';

export const driverParts: LibraryParts = ['surfaces/cli/driver/check-driver.js'];

type DriverLibrary = typeof import('../../src/surfaces/cli/driver/check-driver.js') & {
  readonly folder: string;
};

type Check = (library: DriverLibrary) => Promise<void>;

/** How long a process may send nothing, with a timeout of 100 ms. */
const SILENCE_MS = 5_200;
const options = { timeoutMs: 100 };
const realTimeout = globalThis.setTimeout;
const [, ownScript = ''] = process.argv;

/** Polls every 20 ms, up to the given number of times. */
async function until(condition: () => boolean, description: string, times = 150): Promise<void> {
  for (let remaining = times; !condition(); remaining--) {
    if (remaining === 0) throw new Error(`${description}: not reached in time.`);
    await new Promise((resolve) => realTimeout(resolve, 20));
  }
}

/** Blocks this process, so that it receives no messages. */
function block(ms: number): void {
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, ms);
}

/** A script in place of the command line: sends the messages of a driver process and then runs `code`. */
class Driver {
  readonly folder = mkdtempSync(join(tmpdir(), 'rondo-driver-'));
  readonly script = join(this.folder, 'driver.mjs');
  private readonly log = join(this.folder, 'log');
  private readonly reports: Promise<unknown>[] = [];

  /** In `code`, `decided` lists the results of earlier processes, `send` sends a message and `log` writes a line. */
  constructor(code: string) {
    writeFileSync(this.log, '');
    writeFileSync(
      this.script,
      `import { appendFileSync, writeSync } from 'node:fs';
import { spawn } from 'node:child_process';
const log = (line) => appendFileSync(${JSON.stringify(this.log)}, line + '\\n');
const send = (message) => new Promise((resolve) => process.send(message, undefined, undefined, resolve));
process.once('disconnect', () => process.exit(0));
process.once('message', async (task) => {
  const decided = task.decided.map(({ id, status, note }) => [id, status, note ?? ''].join(' '));
  await send({ loaded: 'a driver' });
  ${code}
});
await send({ ready: true });
`,
    );
    process.argv[1] = this.script;
    onTestFinished(() => this.close());
  }

  /** Kills the processes that a broken twin left running. The twin may start one more, which does nothing. */
  private async close(): Promise<void> {
    writeFileSync(this.script, '');
    process.argv[1] = this.script;
    for (const pid of this.pids) if (isAlive(pid)) process.kill(pid, 'SIGKILL');
    await Promise.allSettled(this.reports);
    process.argv[1] = ownScript;
    rmSync(this.folder, { recursive: true, force: true });
  }

  get lines(): readonly string[] {
    return readFileSync(this.log, 'utf8').split('\n').slice(0, -1);
  }

  /** The processes that the script logged. */
  get pids(): readonly number[] {
    return this.lines.flatMap((line) => (line.startsWith('pid ') ? [Number(line.slice(4))] : []));
  }

  /** Runs the suite with this driver. */
  report({ checkDriver }: DriverLibrary): Promise<ConformanceReport> {
    const report = checkDriver({ file: this.script, options, onStart: () => undefined });
    this.reports.push(report);
    return report;
  }
}

function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0);
    // A zombie process is not alive.
    return !existsSync(`/proc/${pid}/stat`) || !/\) Z/.test(readFileSync(`/proc/${pid}/stat`, 'utf8'));
  } catch {
    return false;
  }
}

const ONE_CHECK = `
  if (decided.length > 0) await send({ report: { decided } });
  await send({ check: 'LIF-02' });`;

const exitedProcess: Check = async (library) => {
  const driver = new Driver(`${ONE_CHECK} process.exit(7);`);
  expect(await driver.report(library)).toEqual({
    decided: ['LIF-02 fail the process of the driver ended (exit code 7)'],
  });
};

const earlierResults: Check = async (library) => {
  const driver = new Driver(`
  if (decided.length > 0) await send({ report: { decided } });
  await send({ result: { id: 'DEF-01', status: 'pass' } });
  await send({ check: 'LIF-02' });
  process.exit(7);`);
  const { decided } = (await driver.report(library)) as unknown as { readonly decided: readonly string[] };
  expect(decided).toHaveLength(2);
  expect(decided[0]).toBe('DEF-01 pass ');
};

/** Keeps the timers of the silence limit from firing; `onTimer` receives the callback of each one that is set. */
function holdSilenceTimers(onTimer: (fire: () => void) => void) {
  return vi.spyOn(globalThis, 'setTimeout').mockImplementation(((call: () => void, ms?: number) => {
    if (ms !== SILENCE_MS) return realTimeout(call, ms);
    onTimer(call);
    return realTimeout(() => undefined, 0);
  }) as typeof setTimeout);
}

const blockedProcess: Check = async (library) => {
  const driver = new Driver(
    `log('pid ' + process.pid); ${ONE_CHECK}
  log('blocks');
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0);`,
  );
  const silences: (() => void)[] = [];
  const spy = holdSilenceTimers((fire) => silences.push(fire));
  try {
    const report = driver.report(library);
    report.catch(() => undefined);
    await until(() => driver.lines.includes('blocks'), 'the block', 1000);
    // A timer is set when the process is started, and after ready, loaded and check.
    await until(() => silences.length === 4, 'the fourth silence timer');
    silences[3]?.();
    expect(await report).toEqual({ decided: [`LIF-02 fail the driver blocked its process for ${SILENCE_MS} ms`] });
  } finally {
    spy.mockRestore();
  }
  const [pid = 0] = driver.pids;
  await until(() => !isAlive(pid), 'the end of the blocked process');
};

const messagesAfterReport: Check = async (library) => {
  const driver = new Driver(`
  for (const message of [{ report: { decided } }, { check: 'LIF-02' }, { check: 'LIF-03' }]) process.send(message);
  log('sent');
  setInterval(() => {}, 1000);`);
  let silences = 0;
  const spy = holdSilenceTimers(() => {
    silences += 1;
    // The third timer is set after `loaded`. Blocking here delays the report until the messages after it have arrived.
    for (let attempts = 1000; silences === 3 && attempts > 0 && !driver.lines.includes('sent'); attempts--) block(5);
  });
  try {
    expect(await driver.report(library)).toEqual({ decided: [] });
    await new Promise((resolve) => realTimeout(resolve, 50));
  } finally {
    spy.mockRestore();
  }
  // One for the start of the process, one each for ready, loaded and report.
  expect(silences).toBe(4);
};

const childProcesses: Check = async (library) => {
  const driver = new Driver(`
  const { pid } = spawn(process.execPath, ['-e', 'setTimeout(() => {}, 60_000)'], { stdio: 'ignore' });
  log('pid ' + pid);
  await send({ report: { decided } });`);
  expect(await driver.report(library)).toEqual({ decided: [] });
  const [pid = 0] = driver.pids;
  await until(() => !isAlive(pid), 'the end of the process that the driver started');
};

const lostProcesses: Check = async (library) => {
  const driver = new Driver(`log('started'); await send({ check: 'LIF-0' + decided.length }); process.exit(1);`);
  const { checks } = await driver.report(library);
  expect(driver.lines).toHaveLength(5);
  expect(checks.filter(({ note }) => note?.includes('lost 5 processes')).length).toBeGreaterThan(60);
};

const driverStdout: Check = async ({ folder }) => {
  const driver = new Driver(`writeSync(1, 'written by the driver'); await send({ report: { decided } });`);
  const moduleUrl = pathToFileURL(join(folder, 'surfaces/cli/driver/check-driver.js')).href;
  const main = join(driver.folder, 'main.mjs');
  writeFileSync(
    main,
    `import { checkDriver } from ${JSON.stringify(moduleUrl)};
process.argv[1] = ${JSON.stringify(driver.script)};
const report = await checkDriver({ file: 'x', options: {}, onStart: () => undefined });
console.log(JSON.stringify(report));
`,
  );
  const streams = await new Promise<readonly string[]>((resolve) => {
    execFile(process.execPath, [main], (_error, out, err) => resolve([out, err]));
  });
  expect(streams).toEqual(['{"decided":[]}\n', 'written by the driver']);
};

export const driverChecks = {
  'a driver that ends its process fails only the current check': exitedProcess,
  'results from before the loss of a process are kept': earlierResults,
  'a driver that blocks its process fails one check, and the process is killed': blockedProcess,
  'messages of a driver after its report do not delay the end': messagesAfterReport,
  'the processes that a driver starts are killed with it': childProcesses,
  'a driver that loses five processes is abandoned': lostProcesses,
  'the stdout of a driver does not reach the report': driverStdout,
} as const satisfies Record<string, Check>;
