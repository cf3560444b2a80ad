// `rondo harness`: the report for people, the document for programs, exit codes, and receipts that verify offline.

import { chmodSync, cpSync, readdirSync, readFileSync } from 'node:fs';
import { expect } from 'vitest';
import type { HarnessReport } from '../../src/surfaces/harness/run-harness.js';
import { absolute } from '../house/tree.js';
import { Project } from '../support/cli-project.js';
import { FAILED_CASE, PAID_CASE } from '../support/harness-fixture.js';
import { verifies } from '../verifies.js';

const base = { version: '1.0.0', inputSchema: {}, outputSchema: {} };
const loops = {
  clerk: {
    ...{ ...base, id: 'clerk', name: 'Clerk', kind: 'composite', inputSchema: { type: 'object' } },
    composite: { agent: { backend: { id: 'openai', model: 'gpt-5' }, tools: ['pay'], approvals: { pay: 'ask' } } },
  },
  pay: { ...base, id: 'pay', name: 'Pay', kind: 'tool', tool: { implementation: 'exec:pay', safety: 'once' } },
  fail: { ...base, id: 'fail', name: 'Fail', kind: 'tool', tool: { implementation: 'builtin:fail', safety: 'pure' } },
};

/** A project whose tool is a program, so that it runs only if the project is trusted. */
function newProject(cases: readonly object[]): Project {
  const project = new Project(loops);
  chmodSync(project.write('loops/pay', '#!/bin/sh\nexec cat\n'), 0o755);
  project.write('harness.json', { cases });
  project.trusted = true;
  return project;
}

verifies(
  'hosted.harness',
  'a harness passes with 0, prints a line for each case, and writes receipts that verify',
  async () => {
    const project = newProject([PAID_CASE, FAILED_CASE]);
    const passed = await project.run(['harness', '.', '--receipt-dir', 'receipts']);
    expect(passed).toMatchObject({ code: 0, stderr: '' });
    expect(passed.stdout).toMatch(/^ok {6}paid {2}[^\n]*\nok {6}failed {2}[^\n]*\n2 cases: all ok\n$/);
    expect(readdirSync(project.path('receipts'))).toEqual(['failed.receipts.json', 'keys.json', 'paid.receipts.json']);
    for (const name of ['paid', 'failed']) {
      const file = `receipts/${name}.receipts.json`;
      const verdict = await project.run(['verify', file, '--keys', 'receipts/keys.json', '--json']);
      expect([verdict.code, JSON.parse(verdict.stdout)]).toMatchObject([0, { valid: true, trust: 'file' }]);
    }
    expect(project.has('.rondo')).toBe(false);
    const again = await project.run(['harness', '.', '--receipt-dir', 'receipts', '--json']);
    expect([again.code, JSON.parse(again.stdout)]).toMatchObject([64, { error: { code: 'USAGE' } }]);
  },
);

verifies('hosted.harness', 'a case that differs fails with 1, in the document and for people', async () => {
  const other = { ...FAILED_CASE, name: 'other', expect: { status: 'ok', output: { a: 1 } } };
  const project = newProject([FAILED_CASE, other]);
  const { code, stdout } = await project.run(['harness', '.', '--json']);
  const report = JSON.parse(stdout) as HarnessReport;
  expect([code, report.ok, report.cases.map(({ ok }) => ok)]).toEqual([1, false, [true, false]]);
  expect(Object.keys(report)).toEqual(['ok', 'cases']);
  expect(report.cases[1]).toMatchObject({
    ...{ name: 'other', ok: false, status: 'error', verdict: { valid: true } },
    receipts: [expect.stringMatching(/^sha256:[0-9a-f]{64}$/)],
    differences: [
      { path: '/expect/status', expected: 'ok', actual: 'error' },
      { path: '/expect/output', expected: { a: 1 } },
    ],
  });
  const text = await project.run(['harness', '.']);
  expect(text.code).toBe(1);
  expect(text.stdout).toContain('/expect/status\n          expected  "ok"\n          actual    "error"\n');
  expect(text.stdout).toMatch(/2 cases: 1 failed\n$/);
});

verifies(
  'hosted.harness',
  'code of a directory that is not trusted does not run, and a harness without cases is no pass',
  async () => {
    const project = newProject([PAID_CASE]);
    project.trusted = false;
    const untrusted = await project.run(['harness', '.', '--json']);
    expect([untrusted.code, JSON.parse(untrusted.stdout)]).toMatchObject([1, { ok: false }]);
    expect(untrusted.stderr).toContain('is not trusted');
    project.write('empty/harness.toml', 'cases = []');
    const empty = await project.run(['harness', 'empty', '--json']);
    expect([empty.code, JSON.parse(empty.stdout)]).toMatchObject([70, { error: { code: 'CONFIG_INVALID' } }]);
    for (const directory of ['none', 'loops']) expect((await project.run(['harness', directory])).code).toBe(64);
  },
);

/** The identity that the documentation of runx names for a harness. */
const DEMO_SIGNER = {
  RUNX_RECEIPT_SIGN_KID: 'runx-demo-key',
  RUNX_RECEIPT_SIGN_ED25519_SEED_BASE64: 'QkJCQkJCQkJCQkJCQkJCQkJCQkJCQkJCQkJCQkJCQkI=',
  RUNX_RECEIPT_SIGN_ISSUER_TYPE: 'hosted',
};

/** A project with the example in it, as after a clone: nothing is trusted. */
function clonedExample(): Project {
  const project = new Project({});
  const source = absolute('examples/loop-orchestration');
  cpSync(source, project.path('examples/loop-orchestration'), { recursive: true });
  return project;
}

verifies('hosted.harness', 'the example passes without trust, signed by the signer of the environment', async () => {
  const project = clonedExample();
  const args = ['harness', 'examples/loop-orchestration', '--receipt-dir', 'receipts', '--json'];
  const { code, stdout, stderr } = await project.run(args, { env: DEMO_SIGNER });
  expect({ code, stderr }, 'the first command of a new user fails').toEqual({ code: 0, stderr: '' });
  expect(JSON.parse(stdout)).toMatchObject({ ok: true });
  const names = readdirSync(project.path('receipts')).filter((name) => name.endsWith('.receipts.json'));
  expect(names).toHaveLength(5);
  const kids = names.flatMap((name) => {
    const text = readFileSync(project.path(`receipts/${name}`), 'utf8');
    const { receipts } = JSON.parse(text) as { receipts: { envelope: { signatures: { keyid: string }[] } }[] };
    return receipts.flatMap(({ envelope }) => envelope.signatures.map(({ keyid }) => keyid));
  });
  expect(kids.length).toBeGreaterThan(5);
  expect(new Set(kids), 'another key signed').toEqual(new Set(['runx-demo-key']));
  // The public key of the seed, as runx publishes it.
  const publicKey = 'IVL40Zt5HSRFMkLhXy6rbLfP+ntqXtMAl5YOBpiB2xI=';
  expect(JSON.parse(readFileSync(project.path('receipts/keys.json'), 'utf8'))).toEqual({
    keys: [{ kid: 'runx-demo-key', publicKey }],
  });
  const verified = await project.run(['verify', `receipts/${names[0]}`, '--keys', 'receipts/keys.json']);
  expect(verified.code).toBe(0);
});

verifies('hosted.harness', 'a part of the variables of a signer is refused before a case runs', async () => {
  const project = clonedExample();
  for (const name of Object.keys(DEMO_SIGNER)) {
    const env = Object.fromEntries(Object.entries(DEMO_SIGNER).filter(([each]) => each !== name));
    const { code, stderr, stdout } = await project.run(['harness', 'examples/loop-orchestration'], { env });
    expect({ code, stdout }).toEqual({ code: 70, stdout: '' });
    expect(stderr).toContain(`KEYS_UNUSABLE: The signer of receipts cannot be used: ${name} is not set`);
  }
});
