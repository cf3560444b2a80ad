// The runner of harnesses: a case passes only if everything that it expects happened, and nothing else was asked of it.

import { existsSync, readdirSync, readFileSync, rmSync, symlinkSync } from 'node:fs';
import { join } from 'node:path';
import fc from 'fast-check';
import { expect } from 'vitest';
import {
  FAILED_CASE,
  HOSTED_CASE,
  harnessProject,
  PAID_CASE,
  PROGRAM,
  pathsOf,
  runCases,
  runHarnessIn,
} from '../../../spec/support/harness-fixture.js';
import { modelWithParts } from '../../../spec/support/test-models.js';
import { verifies } from '../../../spec/verifies.js';
import { TrustedKeys } from '../../base/trusted-keys.js';
import { jsonEquals } from '../../json/value.js';
import { defineLoop } from '../../loops/define.js';
import { defineAgent } from '../../loops/define-agent.js';
import type { Json } from '../../protocol/json.js';
import { verifyBundle } from '../../views/receipt/verify-bundle.js';
import * as compose from '../compose.js';
import { contained, same } from './differences.js';
import * as defining from './harness-definitions.js';
import * as reading from './read-harness.js';
import { ReceiptDirectory } from './receipt-directory.js';
import * as running from './run-harness.js';
import { maxStepsOf } from './run-hosted-case.js';

const library = { ...compose, ...defining, ...reading, ...running };

/** Values that each member of an enumeration is replaced by. */
const OTHERS: Readonly<Record<string, Json>> = { status: 'stopped', complete: true };

/** Returns every copy of a value in which one leaf is another one, or a list has another length. */
function mutantsOf(value: unknown, member = ''): readonly unknown[] {
  if (Array.isArray(value)) {
    const longer = [...value, value[0] ?? 'more'];
    const inner = value.flatMap((item, index) => mutantsOf(item).map((mutant) => value.with(index, mutant)));
    return [longer, ...(value.length > 0 ? [value.slice(1)] : []), ...inner];
  }
  if (typeof value === 'object' && value !== null)
    return Object.entries(value).flatMap(([name, item]) =>
      mutantsOf(item, name).map((mutant) => ({ ...value, [name]: mutant })),
    );
  if (member === 'state') return [value === 'done' ? 'failed' : 'stopped'];
  if (typeof value === 'string') return [OTHERS[member] ?? `${value}x`];
  return [typeof value === 'number' ? value + 1 : !value];
}

verifies(
  'hosted.harness',
  'a case that passes fails when any value that it expects is another one',
  async () => {
    for (const passing of [PAID_CASE, FAILED_CASE]) {
      const mutants = mutantsOf(passing.expect).map((expectation, index) => ({
        ...{ ...passing, name: `mutant-${index}` },
        expect: expectation,
      }));
      expect(mutants.length).toBeGreaterThan(4);
      const reports = await runCases(library, [passing, ...mutants]);
      expect(reports[passing.name]?.differences).toEqual([]);
      expect(mutants.filter(({ name }) => reports[name]?.ok !== false)).toEqual([]);
    }
  },
  120_000,
);

verifies('hosted.harness', 'a case fails when its script or its answers are not used exactly as they are', async () => {
  const [first, second] = PAID_CASE.script;
  const [answer] = PAID_CASE.approvals;
  const caught = { status: 'error' };
  const reports = await runCases(library, [
    { ...PAID_CASE, name: 'long', script: [first, second, { text: 'more' }] },
    { ...PAID_CASE, name: 'short', script: [first], expect: caught },
    { ...PAID_CASE, name: 'other', script: [{ ...first, expect: 'lamp-2' }], expect: caught },
    { ...PAID_CASE, name: 'twice', approvals: [answer, answer] },
    { ...PAID_CASE, name: 'another-tool', approvals: [{ ...answer, tool: 'sell' }], expect: { status: 'paused' } },
    { ...PAID_CASE, name: 'signal', signals: [{ name: 'paid' }] },
    { ...PAID_CASE, name: 'unanswered', approvals: [], script: [first], expect: { status: 'paused' } },
  ]);
  expect(pathsOf(reports.long)).toEqual(['/script']);
  expect(pathsOf(reports.short)).toEqual(['/script/1']);
  expect(pathsOf(reports.other)).toEqual(['/script/0/expect', '/approvals/0']);
  expect(pathsOf(reports.twice)).toEqual(['/approvals/1']);
  expect(pathsOf(reports['another-tool'])).toEqual(['/script', '/approvals/0']);
  expect(pathsOf(reports.signal)).toEqual(['/signals/0']);
  expect(reports.unanswered).toMatchObject({ ok: true, status: 'paused', verdict: { valid: true } });
});

verifies(
  'hosted.harness',
  'a script answers for every model, also for a model object, and no other model is called',
  async () => {
    const object = modelWithParts();
    const assistant = defineAgent({ id: 'assistant', model: object, tools: {} });
    const script = [{ text: 'Hi.' }];
    const status = { status: 'ok' };
    const reports = await runCases(
      library,
      [
        { name: 'named', loop: 'ask', script, expect: { ...status, output: { text: 'Hi.' } } },
        {
          name: 'object',
          loop: 'assistant',
          input: { prompt: 'x' },
          script,
          expect: { ...status, output: { text: 'Hi.' } },
        },
        { name: 'local', loop: 'local@1.0.0', expect: status },
        { name: 'unscripted', loop: 'ask', expect: { status: 'error' } },
        { name: 'unscripted-object', loop: 'assistant', input: { prompt: 'x' }, expect: { status: 'error' } },
        { name: 'listed', loop: 'listed', expect: { ...status, output: { text: 'Hello.' } } },
      ],
      { code: [assistant], env: { OPENAI_API_KEY: 'secret' } },
    );
    for (const name of ['named', 'object', 'local']) expect([name, reports[name]?.differences]).toEqual([name, []]);
    expect(reports.unscripted?.differences).toMatchObject([{ path: '/script/0', actual: 'a call of openai:gpt-5' }]);
    expect(pathsOf(reports['unscripted-object'])).toEqual(['/script/0']);
    expect(reports.listed?.differences).toMatchObject([{ path: '/script', actual: '1 steps are unused' }]);
  },
);

verifies(
  'hosted.harness',
  'signals are sent when the turn waits for them, and the clock of a case starts when it says',
  async () => {
    const order = defineLoop({
      ...{ id: 'order', input: true, output: true },
      run: async (_: unknown, scope) => {
        const at = new Date(await scope.now()).toISOString().slice(0, 16);
        return { at, paid: await scope.wait('paid'), sent: await scope.wait('sent') };
      },
    });
    const now = '2031-05-06T07:08:00Z';
    const signals = [{ name: 'paid', payload: 5 }, { name: 'sent' }];
    const output = { at: '2031-05-06T07:08', paid: 5 };
    const reports = await runCases(
      library,
      [
        { name: 'both', loop: 'order', now, signals, expect: { status: 'ok', outputContains: output } },
        { name: 'first', loop: 'order', signals: signals.slice(0, 1), expect: { status: 'paused' } },
        { name: 'wrong-order', loop: 'order', signals: [...signals].reverse(), expect: { status: 'paused' } },
      ],
      { code: [order] },
    );
    expect(reports.both?.differences).toEqual([]);
    expect(reports.first?.differences).toEqual([]);
    expect(pathsOf(reports['wrong-order'])).toEqual(['/signals/0', '/signals/1']);
  },
);

verifies(
  'hosted.harness',
  'each case has its own store and keys, which are removed, and the project stays as it is',
  async () => {
    const directories: string[] = [];
    const { directory } = harnessProject({ cases: [PAID_CASE, { ...PAID_CASE, name: 'again' }] });
    const before = readdirSync(directory);
    const receipts = join(directory, 'receipts');
    const options = { env: {}, receiptDirectory: await ReceiptDirectory.create(receipts, () => false) };
    const { ok } = await runHarnessIn(library, directory, {
      ...options,
      onDirectory: (scratch) => void (scratch !== undefined && directories.push(scratch)),
    });
    expect(ok).toBe(true);
    expect(new Set(directories).size).toBe(2);
    expect(directories.filter(existsSync)).toEqual([]);
    expect(readdirSync(directory)).toEqual([...before, 'receipts'].sort());
    const keys = TrustedKeys.parse(JSON.parse(readFileSync(join(receipts, 'keys.json'), 'utf8')));
    expect(readdirSync(receipts)).toEqual(['again.receipts.json', 'keys.json', 'paid.receipts.json']);
    for (const name of ['paid', 'again']) {
      const bundle = readFileSync(join(receipts, `${name}.receipts.json`));
      expect(verifyBundle(bundle, keys, { trust: 'file' }).verdict).toMatchObject({
        valid: true,
        subject: { receipts: 2 },
      });
    }
    await expect(ReceiptDirectory.create(receipts, () => false)).rejects.toThrow('is not empty');
  },
);

verifies(
  'hosted.harness',
  'a case with a hosted loop passes only if the loop stopped as expected',
  async () => {
    const expectation = {
      ...{ reason: 'max_turns', turns: 3, chain: 4, toolCalls: ['pay'], output: { text: 'Done.' } },
      ...{ outputContains: { text: 'Done.' }, verdict: { valid: true, complete: 'unknown' } },
    };
    const mutants = mutantsOf(expectation)
      .filter((mutant) => !['max_turnsx'].includes((mutant as { readonly reason: string }).reason))
      .map((mutant, index) => ({ ...HOSTED_CASE, name: `mutant-${index}`, expect: mutant as object }));
    const other = { ...HOSTED_CASE, name: 'other-reason', expect: { ...expectation, reason: 'deadline' } };
    const passing = { ...HOSTED_CASE, expect: expectation };
    const reports = await runCases(library, [passing, other, ...mutants]);
    expect(reports.hosted).toMatchObject({ ok: true, differences: [], status: 'stopped' });
    expect(mutants.length).toBeGreaterThan(5);
    expect([other, ...mutants].filter(({ name }) => reports[name]?.ok !== false)).toEqual([]);
  },
  120_000,
);

verifies(
  'hosted.harness',
  'a case with a hosted loop fails when its script, answers or signals are not used',
  async () => {
    const [answer] = HOSTED_CASE.approvals;
    const reports = await runCases(library, [
      { ...HOSTED_CASE, name: 'long', script: [...HOSTED_CASE.script, { text: 'more' }] },
      { ...HOSTED_CASE, name: 'twice', approvals: [answer, answer] },
      { ...HOSTED_CASE, name: 'signal', signals: [{ name: 'paid' }] },
      { ...HOSTED_CASE, name: 'denied', approvals: [{ ...answer, approved: false }], expect: { reason: 'approval' } },
      { ...HOSTED_CASE, name: 'invalid', host: 'invalid.json' },
      {
        ...HOSTED_CASE,
        name: 'waits',
        host: 'reports.json',
        approvals: [],
        script: [],
        expect: { reason: 'approval' },
      },
    ]);
    expect(pathsOf(reports.long)).toEqual(['/script']);
    expect(pathsOf(reports.twice)).toEqual(['/approvals/1']);
    expect(pathsOf(reports.signal)).toEqual(['/signals/0']);
    expect(reports.denied?.differences.filter(({ path }) => path !== '/script')).toEqual([]);
    expect(reports.invalid?.differences[0]).toMatchObject({ path: '/expect/reason', actual: 'DEFINITION_INVALID' });
    expect(reports.waits?.differences[0]).toMatchObject({ path: '/expect/reason', actual: 'waiting (signal)' });
  },
  120_000,
);

verifies(
  'hosted.harness',
  'the clock of a case skips to the due times, the deadline and the timers of a hosted loop',
  async () => {
    const nap = defineLoop({
      ...{ id: 'nap', input: true, output: true },
      run: async (_: unknown, scope) => {
        await scope.sleep('6 hours');
        return new Date(await scope.now()).toISOString().slice(0, 13);
      },
    });
    const now = '2031-05-06T07:08:00Z';
    const daily = { ...HOSTED_CASE, script: [], approvals: [], now };
    const reports = await runCases(
      library,
      [
        {
          ...daily,
          name: 'daily',
          host: 'daily.json',
          expect: { reason: 'max_turns', turns: 2, output: '2031-05-07T15' },
        },
        {
          ...daily,
          name: 'late',
          host: 'late.json',
          expect: { reason: 'deadline', turns: 1, output: '2031-05-06T15' },
        },
        {
          ...{ ...daily, name: 'signalled', host: 'reports.json', signals: [{ name: 'report', payload: { n: 7 } }] },
          expect: { reason: 'terminal', turns: 1, output: { n: 7 }, toolCalls: ['pay'] },
        },
      ],
      { code: [nap] },
    );
    for (const name of ['daily', 'late', 'signalled']) expect([name, reports[name]?.differences]).toEqual([name, []]);
  },
  120_000,
);

verifies('hosted.harness', 'a case with a hosted loop takes at most 10,000 steps, whatever its loop may do', () => {
  const item = { signals: [{ name: 'paid' }], approvals: [] };
  expect(maxStepsOf({ maxTurns: 2 }, item)).toBe(400);
  for (const maxTurns of [100, 1_000_000, Number.MAX_SAFE_INTEGER]) expect(maxStepsOf({ maxTurns }, item)).toBe(10_000);
});

const invalid: readonly [harness: object | string, message: string][] = [
  ['[', '/harness.json: '],
  ['{"cases": [], "cases": []}', 'duplicate key'],
  [[], 'harness.json: must be'],
  [{}, 'must have the property "cases"'],
  [{ cases: [] }, '/cases: must have at least 1'],
  [{ cases: [PAID_CASE], case: [] }, '/case: is not allowed; known here: $schema, loops, cases; did you mean "cases"?'],
  [{ cases: [PAID_CASE, { ...PAID_CASE, name: 'PAID' }] }, '/cases/1/name: "PAID" is the name of an earlier case'],
  [{ cases: [{ ...PAID_CASE, name: '../x' }] }, '/cases/0/name: must match'],
  [{ cases: [{ ...PAID_CASE, expct: {} }] }, '/cases/0/expct: is not allowed; known here: name'],
  [{ cases: [{ ...PAID_CASE, expect: {} }] }, '/cases/0/expect: must have the property "status"'],
  [{ cases: [{ ...PAID_CASE, expect: { status: 'fine' } }] }, '/cases/0/expect/status: must be one of'],
  [{ cases: [{ ...PAID_CASE, expect: { status: 'ok', outputs: 1 } }] }, '/cases/0/expect/outputs: is not allowed'],
  [{ cases: [{ ...PAID_CASE, host: 'x.json' }] }, '/cases/0: has both loop and host'],
  [
    { cases: [{ name: 'x', hsot: 'x.json', expect: {} }] },
    '/cases/0: must have loop, for one turn, or host, for a hosted loop; did you mean "host"?',
  ],
  [
    { cases: [{ name: 'x', host: 'x.json', expect: { status: 'stopped' } }] },
    '/cases/0/expect/status: is not allowed; known here: reason, turns, chain, output',
  ],
  [{ cases: [{ name: 'x', host: 'x.json', expect: { reason: 'done' } }] }, '"turn_failed", "refused", "stopped_by".'],
  [
    { cases: [{ name: 'x', host: 'x.json', input: {}, expect: { reason: 'budget' } }] },
    '/cases/0/input: is not allowed; known here: name, script, approvals, signals, now, host, expect',
  ],
  [{ cases: [{ name: 'x', host: 'x.json', expect: { reason: 'max_turns' } }] }, '/cases/0/host: x.json cannot be used'],
  [{ cases: [{ ...PAID_CASE, now: 'tomorrow' }] }, '/cases/0/now: must be a time'],
  [
    { cases: [{ ...PAID_CASE, script: [{ txt: 'x' }] }] },
    "/cases/0/script: The script, element 0, has the unknown key 'txt'",
  ],
  [{ cases: [{ ...PAID_CASE, script: '../../secret.json' }] }, '/cases/0/script: ../../secret.json cannot be used'],
  [{ cases: [{ ...PAID_CASE, grant: 'loops' }] }, '/cases/0/grant: loops cannot be used'],
  [{ cases: [{ ...PAID_CASE, signals: [{ name: 'steer' }] }] }, '/cases/0/signals/0/name: it is reserved'],
  [
    { cases: [{ ...PAID_CASE, approvals: [{ tool: 'pay' }] }] },
    '/cases/0/approvals/0: must have the property "approved"',
  ],
  [{ cases: [PAID_CASE], loops: 'none' }, '/loops: there is no such directory'],
  [{ cases: [PAID_CASE], loops: '/' }, '/loops: is outside of'],
];

verifies(
  'hosted.harness',
  'an invalid harness, and one without cases, is refused with the path of the problem',
  async () => {
    for (const [harness, message] of invalid) {
      const { directory } = harnessProject(harness);
      const thrown: unknown = await runHarnessIn(library, directory).catch((error: unknown) => error);
      expect(thrown).toMatchObject({ code: 'CONFIG_INVALID', message: expect.stringContaining(message) });
    }
    const { directory, write } = harnessProject({ cases: [PAID_CASE] });
    write('harness.toml', '');
    await expect(runHarnessIn(library, directory)).rejects.toThrow('has both');
    await expect(runHarnessIn(library, join(directory, 'loops'))).rejects.toThrow('has no harness');
  },
);

verifies(
  'authority.trust',
  'a harness in a directory that is not trusted runs no definitions outside of it that need trust, however it names them',
  async () => {
    const { directory: cwd, write } = harnessProject({ cases: [PAID_CASE] });
    const [loops, clone] = [join(cwd, 'loops'), join(cwd, 'clone')];
    const run = (directory: string, trust = [loops]) => runHarnessIn(library, directory, { cwd, flags: { trust } });
    const program = write('loops/program.json', PROGRAM);
    for (const harness of [{ cases: [PAID_CASE] }, { cases: [PAID_CASE], loops: '../loops' }]) {
      write('clone/harness.json', harness);
      const message = expect.stringContaining(`run: rondo trust ${clone}`);
      await expect(run(clone)).rejects.toMatchObject({ code: 'CONFIG_INVALID', message });
      // Nothing of the definitions is trusted; or the operator trusts the directory, or one above it.
      for (const trust of [[], [loops, clone], [cwd]])
        expect((await run(clone, trust)).ok, `trusted: ${trust}`).toBe(true);
    }
    symlinkSync(loops, join(clone, 'loops'));
    write('clone/harness.json', { cases: [PAID_CASE] });
    await expect(run(clone)).rejects.toThrow('rondo trust');
    // Definitions inside of the directory are trusted by themselves.
    expect((await run(cwd)).ok).toBe(true);
    // Without the program, none of the definitions needs trust.
    rmSync(program);
    expect((await run(clone)).ok).toBe(true);
  },
  60_000,
);

const json = fc.jsonValue({ maxDepth: 3 }) as fc.Arbitrary<Json>;

/** Returns a value that has more members than another one, at any depth. */
function extended(value: Json): Json {
  if (Array.isArray(value)) return value.map(extended);
  if (typeof value !== 'object' || value === null) return value;
  const members = Object.entries(value).map(([name, member]) => [name, extended(member)]);
  return { ...Object.fromEntries(members), 'a member that no case mentions': 1 };
}

verifies('hosted.harness', 'values differ unless they are equal, and a part differs unless it is contained', () => {
  fc.assert(
    fc.property(json, json, (a, b) => {
      expect(same('', a, b).length === 0).toBe(jsonEquals(a, b));
      expect(same('', a, undefined)).toHaveLength(1);
      expect(contained('', a, a)).toEqual([]);
      expect(contained('', a, extended(a))).toEqual([]);
      expect(contained('', { part: a }, { part: [a] }).length).toBeGreaterThan(0);
      expect(contained('', { part: a }, {}).length).toBeGreaterThan(0);
      if (contained('', a, b).length === 0 && contained('', b, a).length === 0) expect(jsonEquals(a, b)).toBe(true);
    }),
  );
});
