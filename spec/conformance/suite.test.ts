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

/** The mini runtime with some of its members replaced. */
function altered(members: (runtime: LsemRuntime) => Partial<LsemRuntime>): LsemDriver {
  const driver = mini();
  return {
    ...driver,
    async open() {
      const runtime = await driver.open();
      const whole: LsemRuntime = {
        register: (definition) => runtime.register(definition),
        run: (loopId, input, onEvent) => runtime.run(loopId, input, onEvent),
      };
      return { ...whole, ...members(runtime) };
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
  title: 'made up',
  run,
});

verifies('lsem.suite', 'a runtime that does everything right is found wanting', async () => {
  const report = await checkConformance(mini());
  expect(report.checks.filter(({ status }) => status !== 'pass')).toEqual([]);
  expect(report.points.map(({ status }) => status)).toEqual(Array(5).fill('pass'));
  expect(report.summary).toEqual({
    total: 74,
    passed: 74,
    failed: 0,
    notApplicable: 0,
    knownFailures: 0,
    conformant: true,
  });
  expect(JSON.parse(JSON.stringify(report))).toEqual(report);
});

verifies('lsem.suite', 'what a driver cannot show counts as shown, or as failed', async () => {
  const { profile, ...driver } = altered(() => ({}));
  const { custom, ...tool } = profile.tool;
  const report = await checkConformance({ ...driver, profile: { ...profile, tool } });
  const unjudged = report.checks.filter(({ status }) => status === 'not-applicable');
  expect(unjudged.map(({ id }) => id)).toEqual(['DEF-09', 'DEF-12', 'TRC-14', 'TRC-15', 'TRC-16']);
  expect(unjudged.every(({ note }) => note?.includes('driver'))).toBe(true);
  expect(statusOf(report, 'VAL-01')).toMatch(/^pass: judged by the trace alone/);
  expect(report.summary).toMatchObject({ failed: 0, conformant: false });
  expect(report.points.map(({ status }) => status)).toEqual(['pass', 'pass', 'pass', 'not-applicable', 'pass']);
  expect(renderConformance(report, { color: false })).toContain('conformance not shown');
});

verifies('lsem.suite', 'a runtime that hangs makes the judgement hang', async () => {
  const hanging = altered(() => ({ run: () => new Promise<LsemResult>(() => {}) }));
  const report = await checkConformance(hanging, { only: ['DEF-02', 'DEF-03', 'LIF-06', 'TRC-03'], timeoutMs: 50 });
  expect(statusOf(report, 'DEF-02')).toBe('pass: ');
  for (const id of ['DEF-03', 'LIF-06', 'TRC-03']) expect(statusOf(report, id)).toContain('did not end within 50 ms');
});

verifies('lsem.suite', 'a runtime that cannot be closed, or opened, takes the judgement with it', async () => {
  const stuck = altered(() => ({ close: () => new Promise<void>(() => {}) }));
  expect(statusOf(await checkConformance(stuck, { only: ['DEF-01'], timeoutMs: 50 }), 'DEF-01')).toMatch(
    /^pass: closing/,
  );
  const sour = altered(() => ({ close: () => Promise.reject(new Error('no')) }));
  expect(statusOf(await checkConformance(sour, { only: ['DEF-01'] }), 'DEF-01')).toBe(
    'pass: closing the runtime failed: no',
  );
  const shut = { ...mini(), open: () => Promise.reject(new Error('shut')) };
  const report = await checkConformance(shut, { timeoutMs: 200 });
  expect(report.summary).toMatchObject({ passed: 2, failed: 72, conformant: false });
});

verifies('lsem.suite', 'a result or an event that is none is taken for one', async () => {
  for (const given of [undefined, null, 'done', [], {}, { status: 'ok', output: 1, trace: 'none' }]) {
    const report = await checkConformance(altered(() => ({ run: async () => given as unknown as LsemResult })));
    expect(statusOf(report, 'LIF-02')).toMatch(/^fail/);
    expect(statusOf(report, 'TRC-01')).toMatch(/^fail/);
    expect(report.summary.conformant).toBe(false);
  }
  const noisy = altered((runtime) => ({
    async run(loopId, input, onEvent) {
      for (const event of [null, 'event', 7n, { callId: 7 }]) onEvent?.(event as never);
      return runtime.run(loopId, input, onEvent);
    },
  }));
  expect(statusOf(await checkConformance(noisy, { only: ['TRC-01'] }), 'TRC-01')).toMatch(/^fail: an event has/);
});

verifies(
  'lsem.suite.text',
  'a runtime that hands over no events while it runs is judged by the traces of its results',
  async () => {
    const mute = altered((runtime) => ({ run: (loopId, input) => runtime.run(loopId, input) }));
    const report = await checkConformance(mute);
    const failed = report.checks.filter(({ status }) => status === 'fail').map(({ id }) => id);
    expect(failed).toEqual([]);
    expect(statusOf(report, 'TRC-17')).toMatch(/^pass: no event was handed over while tool ran/);
  },
);

verifies('lsem.suite', 'a runtime whose trace holds the events of the call itself is called wrong for it', async () => {
  const own = altered((runtime) => ({
    async run(loopId, input, onEvent) {
      const result = await runtime.run(loopId, input, onEvent);
      return { ...result, trace: result.trace.filter(({ callId }) => callId === result.trace[0]?.callId) };
    },
  }));
  expect(statusOf(await checkConformance(own, { only: ['TRC-17'] }), 'TRC-17')).toMatch(
    /^pass: the trace in a result holds/,
  );
});

verifies('lsem.suite', 'a misspelt id or option quietly judges less', async () => {
  await expect(checkConformance(mini(), { only: ['DEF-01', 'DEF-99'] })).rejects.toThrow('There is no check DEF-99');
  await expect(checkConformance(mini(), { onyl: ['DEF-01'] } as object)).rejects.toThrow('judge has no option "onyl"');
  for (const timeoutMs of [0, -1, Number.NaN, Number.POSITIVE_INFINITY]) {
    await expect(checkConformance(mini(), { timeoutMs })).rejects.toThrow('timeoutMs');
  }
});

verifies('lsem.suite', 'a judgement of a few checks passes for one of all', async () => {
  const report = await checkConformance(mini(), { only: ['DEF-01', 'CNF-01'] });
  expect(report.checks).toHaveLength(74);
  expect(report.summary).toMatchObject({ passed: 2, notApplicable: 72, conformant: false });
  expect(statusOf(report, 'DEF-02')).toBe('not-applicable: not asked for');
});

verifies('lsem.suite', 'a check that asks for more than a driver must have goes unnoticed (NEG-01)', async () => {
  const greedy = check('DEF-01', async (stage) => {
    if (stage.customTool((input) => input) === undefined) throw new CheckFailure('it must take functions');
  });
  const checks = [greedy, ...catalogue.slice(1)];
  expect(statusOf(await runChecks(checks, mini()), 'NEG-01')).toMatch(/^fail: DEF-01 fails where a driver has/);
  expect(statusOf(await runChecks(checks, mini(), { only: ['NEG-01'] }), 'NEG-01')).toMatch(/^fail: DEF-01/);
  const modest = check('DEF-01', async (stage) => {
    if (stage.customTool((input) => input) === undefined) throw new NotApplicableError('it takes no functions');
  });
  expect(statusOf(await runChecks([modest, ...catalogue.slice(1)], mini()), 'NEG-01')).toBe('pass: ');
});

verifies('lsem.suite', 'a fault of the runtime is taken for a greedy suite (NEG-01)', async () => {
  const report = await checkConformance(mini({ wrong: 'TRC-21' }), { only: ['NEG-01'] });
  expect(statusOf(report, 'NEG-01')).toBe('pass: ');
});

verifies('lsem.suite', 'a report leaves something out, or does not say whom it judges (CNF-01)', async () => {
  const only = ['CNF-01'];
  expect(statusOf(await runChecks(catalogue.slice(1), mini(), { only }), 'CNF-01')).toBe(
    'fail: DEF-01 is not in the report',
  );
  const twice = await runChecks([...catalogue.slice(0, 1), ...catalogue], mini(), { only });
  expect(statusOf(twice, 'CNF-01')).toContain('DEF-01 is in the report more than once');
  const nameless = await checkConformance({ ...mini(), name: '' }, { only });
  expect(statusOf(nameless, 'CNF-01')).toBe('fail: the report does not say which runtime was judged');
});

verifies('lsem.suite', 'a check that breaks is passed over, or its message breaks the terminal', async () => {
  const broken = check('DEF-01', async () => {
    throw new TypeError('\u001b[2Jline one\nline two');
  });
  const report = await runChecks([broken], mini(), { only: ['DEF-01'] });
  expect(statusOf(report, 'DEF-01')).toBe('fail: the check was broken off: [2Jline one line two');
  const text = renderConformance(report, { color: false });
  expect(text).not.toContain('\u001b');
  expect(text).toContain('not conformant');
  expect(renderConformance(report, { color: true })).toContain('\u001b[31m✗');
});

verifies('lsem.suite', 'a reader does not find the failure, its reason or the sum', async () => {
  const report = await checkConformance(mini({ wrong: 'TRC-08' }), { only: ['TRC-08', 'TRC-09', 'DEF-01'] });
  const lines = renderConformance(report, { color: false }).split('\n');
  const at = lines.findIndex((line) => line.startsWith('  ✗ TRC-08  §6    MUST    call.tool.invoked'));
  expect(lines[at + 1]).toBe('      call.tool.invoked has nothing for toolName, in {"implementation":"echo"}');
  expect(lines[at + 2]).toMatch(/^ {2}✓ TRC-09/);
  expect(lines).toContain('2 passed, 1 failed, 71 not applicable, of 74: not conformant');
});
