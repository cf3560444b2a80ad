import { expect } from 'vitest';
import { CheckFailure, NotApplicableError } from '../../src/conformance/assertions.js';
import { catalogue } from '../../src/conformance/catalogue.js';
import type { ConformanceCheck } from '../../src/conformance/check.js';
import type { LsemDriver, LsemResult, LsemRuntime } from '../../src/conformance/driver.js';
import { renderConformance } from '../../src/conformance/render.js';
import type { ConformanceReport } from '../../src/conformance/report.js';
import { checkConformance, runChecks } from '../../src/conformance/run-suite.js';
import { verifies } from '../verifies.js';
import { mini } from './mini.js';

/** Returns the driver of the mini runtime with some members of the runtime replaced. */
function driverWith(members: (runtime: LsemRuntime) => Partial<LsemRuntime>): LsemDriver {
  const driver = mini();
  return {
    ...driver,
    async open() {
      const runtime = await driver.open();
      const required: LsemRuntime = {
        register: (definition) => runtime.register(definition),
        run: (loopId, input, onEvent) => runtime.run(loopId, input, onEvent),
      };
      return { ...required, ...members(runtime) };
    },
  };
}

function statusOf(report: ConformanceReport, id: string): string {
  const check = report.checks.find((each) => each.id === id);
  return check === undefined ? 'missing' : `${check.status}: ${check.note ?? ''}`;
}

const check = (id: string, run: ConformanceCheck['run']): ConformanceCheck => ({
  id,
  section: '0',
  level: 'MUST',
  title: 'a sample check',
  run,
});

verifies('lsem.suite', 'a correct runtime passes every check', async () => {
  const report = await checkConformance(mini());
  expect(report.checks.filter(({ status }) => status !== 'pass')).toEqual([]);
  expect(report.points.map(({ status }) => status)).toEqual(Array(5).fill('pass'));
  expect(report.summary).toEqual({
    total: 75,
    passed: 75,
    failed: 0,
    notApplicable: 0,
    knownFailures: 0,
    conformant: true,
  });
  expect(JSON.parse(JSON.stringify(report))).toEqual(report);
});

verifies(
  'lsem.suite',
  'a check that a driver cannot support is not applicable, neither passed nor failed',
  async () => {
    const { profile, ...driver } = driverWith(() => ({}));
    const { custom, ...tool } = profile.tool;
    const report = await checkConformance({ ...driver, profile: { ...profile, tool } });
    const notApplicable = report.checks.filter(({ status }) => status === 'not-applicable');
    expect(notApplicable.map(({ id }) => id)).toEqual(['DEF-09', 'DEF-12', 'TRC-14', 'TRC-15', 'TRC-16']);
    expect(notApplicable.every(({ note }) => note?.includes('driver'))).toBe(true);
    expect(statusOf(report, 'VAL-01')).toMatch(/^pass: checked by the trace alone/);
    expect(report.summary).toMatchObject({ failed: 0, conformant: false });
    expect(report.points.map(({ status }) => status)).toEqual(['pass', 'pass', 'pass', 'not-applicable', 'pass']);
    expect(renderConformance(report, { color: false })).toContain('conformance not shown');
  },
);

verifies('lsem.suite', 'a runtime that hangs fails its checks and does not block the suite', async () => {
  const hanging = driverWith(() => ({ run: () => new Promise<LsemResult>(() => {}) }));
  const report = await checkConformance(hanging, { only: ['DEF-02', 'DEF-03', 'LIF-06', 'TRC-03'], timeoutMs: 50 });
  expect(statusOf(report, 'DEF-02')).toBe('pass: ');
  for (const id of ['DEF-03', 'LIF-06', 'TRC-03']) expect(statusOf(report, id)).toContain('did not end within 50 ms');
});

verifies('lsem.suite', 'a runtime that cannot be closed or opened does not stop the suite', async () => {
  const stuck = driverWith(() => ({ close: () => new Promise<void>(() => {}) }));
  expect(statusOf(await checkConformance(stuck, { only: ['DEF-01'], timeoutMs: 50 }), 'DEF-01')).toMatch(
    /^pass: closing/,
  );
  const rejecting = driverWith(() => ({ close: () => Promise.reject(new Error('no')) }));
  expect(statusOf(await checkConformance(rejecting, { only: ['DEF-01'] }), 'DEF-01')).toBe(
    'pass: closing the runtime failed: no',
  );
  const unopenable = { ...mini(), open: () => Promise.reject(new Error('shut')) };
  const report = await checkConformance(unopenable, { timeoutMs: 200 });
  expect(report.summary).toMatchObject({ passed: 2, failed: 73, conformant: false });
});

verifies('lsem.suite', 'invalid results and events fail their checks', async () => {
  for (const invalid of [undefined, null, 'done', [], {}, { status: 'ok', output: 1, trace: 'none' }]) {
    const report = await checkConformance(driverWith(() => ({ run: async () => invalid as unknown as LsemResult })));
    expect(statusOf(report, 'LIF-02')).toMatch(/^fail/);
    expect(statusOf(report, 'TRC-01')).toMatch(/^fail/);
    expect(report.summary.conformant).toBe(false);
  }
  const noisy = driverWith((runtime) => ({
    async run(loopId, input, onEvent) {
      for (const event of [null, 'event', 7n, { callId: 7 }]) onEvent?.(event as never);
      return runtime.run(loopId, input, onEvent);
    },
  }));
  expect(statusOf(await checkConformance(noisy, { only: ['TRC-01'] }), 'TRC-01')).toMatch(/^fail: an event has/);
});

verifies(
  'lsem.suite.text',
  'a runtime that passes no live events is checked by the traces of its results',
  async () => {
    const mute = driverWith((runtime) => ({ run: (loopId, input) => runtime.run(loopId, input) }));
    const report = await checkConformance(mute);
    const failed = report.checks.filter(({ status }) => status === 'fail').map(({ id }) => id);
    expect(failed).toEqual([]);
    expect(statusOf(report, 'TRC-17')).toMatch(/^pass: no event was passed to onEvent while tool ran/);
  },
);

verifies('lsem.suite', 'a trace with only the events of the call itself is accepted', async () => {
  const rootOnly = driverWith((runtime) => ({
    async run(loopId, input, onEvent) {
      const result = await runtime.run(loopId, input, onEvent);
      return { ...result, trace: result.trace.filter(({ callId }) => callId === result.trace[0]?.callId) };
    },
  }));
  expect(statusOf(await checkConformance(rootOnly, { only: ['TRC-17'] }), 'TRC-17')).toMatch(
    /^pass: the trace in a result contains/,
  );
});

verifies('lsem.suite', 'a misspelt id or option is an error', async () => {
  await expect(checkConformance(mini(), { only: ['DEF-01', 'DEF-99'] })).rejects.toThrow('There is no check DEF-99');
  await expect(checkConformance(mini(), { onyl: ['DEF-01'] } as object)).rejects.toThrow(
    'checkConformance has no option "onyl"',
  );
  for (const timeoutMs of [0, -1, Number.NaN, Number.POSITIVE_INFINITY]) {
    await expect(checkConformance(mini(), { timeoutMs })).rejects.toThrow('timeoutMs');
  }
});

verifies('lsem.suite', 'a report on a few checks is never conformant', async () => {
  const report = await checkConformance(mini(), { only: ['DEF-01', 'CNF-01'] });
  expect(report.checks).toHaveLength(75);
  expect(report.summary).toMatchObject({ passed: 2, notApplicable: 73, conformant: false });
  expect(statusOf(report, 'DEF-02')).toBe('not-applicable: not selected');
});

verifies('lsem.suite', 'NEG-01 fails for a check that requires an optional member of a driver', async () => {
  const greedy = check('DEF-01', async (context) => {
    if (context.customTool((input) => input) === undefined) throw new CheckFailure('it must take functions');
  });
  const checks = [greedy, ...catalogue.slice(1)];
  expect(statusOf(await runChecks(checks, mini()), 'NEG-01')).toMatch(/^fail: DEF-01 fails for a driver with/);
  expect(statusOf(await runChecks(checks, mini(), { only: ['NEG-01'] }), 'NEG-01')).toMatch(/^fail: DEF-01/);
  const modest = check('DEF-01', async (context) => {
    if (context.customTool((input) => input) === undefined) throw new NotApplicableError('it takes no functions');
  });
  expect(statusOf(await runChecks([modest, ...catalogue.slice(1)], mini()), 'NEG-01')).toBe('pass: ');
});

verifies('lsem.suite', 'NEG-01 passes if a check fails because of the runtime', async () => {
  const report = await checkConformance(mini({ wrong: 'TRC-21' }), { only: ['NEG-01'] });
  expect(statusOf(report, 'NEG-01')).toBe('pass: ');
});

verifies('lsem.suite', 'CNF-01 fails for a report with missing or duplicate checks or without a runtime', async () => {
  const only = ['CNF-01'];
  expect(statusOf(await runChecks(catalogue.slice(1), mini(), { only }), 'CNF-01')).toBe(
    'fail: DEF-01 is not in the report',
  );
  const twice = await runChecks([...catalogue.slice(0, 1), ...catalogue], mini(), { only });
  expect(statusOf(twice, 'CNF-01')).toContain('DEF-01 is in the report more than once');
  const nameless = await checkConformance({ ...mini(), name: '' }, { only });
  expect(statusOf(nameless, 'CNF-01')).toBe('fail: the report does not name the runtime');
});

verifies('lsem.suite', 'a check that throws fails, and its message cannot control the terminal', async () => {
  const broken = check('DEF-01', async () => {
    throw new TypeError('\u001b[2Jline one\nline two');
  });
  const report = await runChecks([broken], mini(), { only: ['DEF-01'] });
  expect(statusOf(report, 'DEF-01')).toBe('fail: the check was aborted: [2Jline one line two');
  const text = renderConformance(report, { color: false });
  expect(text).not.toContain('\u001b');
  expect(text).toContain('not conformant');
  expect(renderConformance(report, { color: true })).toContain('\u001b[31m✗');
});

verifies('lsem.suite', 'the rendered report shows the failure, its reason and the summary', async () => {
  const report = await checkConformance(mini({ wrong: 'TRC-08' }), { only: ['TRC-08', 'TRC-09', 'DEF-01'] });
  const lines = renderConformance(report, { color: false }).split('\n');
  const row = lines.findIndex((line) => line.startsWith('  ✗ TRC-08  §6    MUST    call.tool.invoked'));
  expect(lines[row + 1]).toBe('      call.tool.invoked has nothing for toolName, in {"implementation":"echo"}');
  expect(lines[row + 2]).toMatch(/^ {2}✓ TRC-09/);
  expect(lines).toContain('2 passed, 1 failed, 72 not applicable, of 75: not conformant');
});
