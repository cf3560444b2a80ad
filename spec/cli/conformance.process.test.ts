// `rondo conformance --driver` prints a report or a reason, however a driver behaves. Each driver has a process.

import { fileURLToPath, pathToFileURL } from 'node:url';
import { expect } from 'vitest';
import type { CheckResult, ConformanceReport } from '../../src/conformance/report.js';
import { type ProcessResult, Project } from '../support/cli-project.js';
import { inLanes } from '../support/lanes.js';
import { verifies } from '../verifies.js';

const example = pathToFileURL(fileURLToPath(new URL('../../examples/09-conformance/driver.mjs', import.meta.url))).href;

/** Runs the suite with a driver of this source. `good` is the driver of the example. */
function checkDriver(text: string, ...args: string[]): Promise<ProcessResult> {
  const project = new Project();
  const file = project.write('a driver.mjs', `import { driver as good } from ${JSON.stringify(example)};\n${text}\n`);
  return project.runProcess(['conformance', '--driver', file, ...args]);
}

const driverWithRun = (body: string): string => `
  export default {
    ...good,
    async open() {
      const runtime = await good.open();
      return { ...runtime, run: async (loopId, input, onEvent) => { ${body} } };
    },
  };`;

function rowsOf({ stdout }: ProcessResult): ReadonlyMap<string, CheckResult> {
  const { checks } = JSON.parse(stdout) as ConformanceReport;
  return new Map(checks.map((row) => [row.id, row]));
}

const SELECTED = ['--only', 'DEF-01,LIF-02', '--json'];

verifies('lsem.suite.driver', 'stdout contains only the report; output of the driver goes to stderr', async () => {
  const noisy = `
    import { writeSync } from 'node:fs';
    console.log('printed at import');
    ${driverWithRun("writeSync(1, 'written to the descriptor'); return runtime.run(loopId, input, onEvent);")}`;
  const ended = await checkDriver(noisy, ...SELECTED);
  expect(ended.code, ended.stderr).toBe(0);
  expect(rowsOf(ended).get('LIF-02')?.status).toBe('pass');
  expect(ended.stderr).toContain('printed at import');
  expect(ended.stderr).toContain('written to the descriptor');
});

verifies('lsem.suite.driver', 'a runtime that fails a check ends with exit code 3, in text and in JSON', async () => {
  const silent = driverWithRun('return runtime.run(loopId, input).then((result) => ({ ...result, trace: [] }));');
  const ended = await checkDriver(silent, '--only', 'DEF-01,LIF-02');
  expect(ended.code).toBe(3);
  expect(ended.stdout).toContain('✗ LIF-02');
  expect(ended.stdout).toContain('✓ DEF-01');
  const json = await checkDriver(silent, ...SELECTED);
  expect(json.code).toBe(3);
  expect(rowsOf(json).get('LIF-02')?.status).toBe('fail');
});

verifies('lsem.suite.driver', 'a run that hangs fails only its own check, after --timeout', async () => {
  const ended = await checkDriver(driverWithRun('return new Promise(() => {});'), ...SELECTED, '--timeout', '300');
  expect(ended.code).toBe(3);
  expect(rowsOf(ended).get('LIF-02')?.note).toContain('did not end within 300 ms');
  expect(rowsOf(ended).get('DEF-01')?.status).toBe('pass');
});

verifies('lsem.suite.driver', 'a run that blocks, ends or crashes its process fails only its own check', async () => {
  const harms = {
    'for (;;) ;': 'blocked its process',
    'process.exit(0);': 'the process of the driver ended (exit code 0)',
    "process.kill(process.pid, 'SIGKILL');": 'the process of the driver ended (SIGKILL)',
    "setTimeout(() => { throw new Error('late'); }); return new Promise(() => {});": 'ended (exit code 70)',
  };
  await inLanes(Object.entries(harms), async ([harm, note]) => {
    const ended = await checkDriver(driverWithRun(harm), ...SELECTED, '--timeout', '400');
    expect(ended.code, harm).toBe(3);
    expect(rowsOf(ended).get('LIF-02')?.note, harm).toContain(note);
    expect(rowsOf(ended).get('DEF-01')?.status, harm).toBe('pass');
  });
});

verifies(
  'lsem.suite.driver',
  'after five crashed processes the remaining checks fail, and the report is complete',
  async () => {
    const ended = await checkDriver('export default { ...good, open: () => process.exit(1) };', '--json');
    expect(ended.code).toBe(3);
    const rows = [...rowsOf(ended).values()];
    expect(rows).toHaveLength(75);
    expect(rows.filter(({ note }) => note?.includes('lost 5 processes'))).toHaveLength(70);
    expect(rows.every(({ status }) => status === 'fail')).toBe(true);
  },
);

verifies('lsem.suite.driver', 'a malformed result of a driver fails its check with a reason', async () => {
  const opened = await checkDriver('export default { ...good, open: () => 7 };', ...SELECTED);
  expect(opened.code).toBe(3);
  expect(rowsOf(opened).get('DEF-01')?.note).toBe('open returned 7, not a runtime with register and run');
  const cyclic = driverWithRun('const result = { status: "ok", trace: [] }; result.output = result; return result;');
  const ended = await checkDriver(cyclic, ...SELECTED);
  expect(rowsOf(ended).get('LIF-02')?.status).toBe('fail');
});

verifies('lsem.suite.driver', 'a file that is not a driver is refused with exit code 64 and a reason', async () => {
  const wrong = {
    'export const x = 1;': 'it exports no driver: write "export default driver" or "export const driver"',
    'export default 7;': 'its export is not a driver: driver is 7, not an object',
    'export default { ...good, name: "" };': 'driver.name is "", not a non-empty string',
    'export default { ...good, agents: 1 };':
      'driver.agents is not a member; the members are name, open, knownFailures, profile',
    'export default { ...good, knownFailures: { "LIF-99": "x" } };': 'there is no check LIF-99',
    'throw new Error("broken at once");': 'broken at once',
    'export default (': 'cannot be used',
  };
  await inLanes(Object.entries(wrong), async ([text, reason]) => {
    const ended = await checkDriver(text);
    expect(ended.code, text).toBe(64);
    expect(ended.stderr, text).toContain(reason);
    expect(ended.stdout, text).toBe('');
  });
  const project = new Project();
  const missing = await project.run(['conformance', '--driver', 'nowhere.mjs']);
  expect(missing.code).toBe(64);
  expect(missing.stderr).toContain('There is no driver');
  for (const timeout of ['0', '-1', 'soon', '1.5', '']) {
    expect((await project.run(['conformance', '--timeout', timeout])).code, timeout).toBe(64);
  }
});
