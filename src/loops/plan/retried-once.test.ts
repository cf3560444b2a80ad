import { expect } from 'vitest';
import { hostOf, tool } from '../../../spec/support/host-fixture.js';
import { planDefinition } from '../../../spec/support/plan-fixture.js';
import { verifies } from '../../../spec/verifies.js';
import { parseToml } from '../../adapters/files/parse-toml.js';
import type { PlanRetry, PlanSpec } from '../../protocol/plan.js';
import { defineLoop } from '../define.js';
import { definePlan } from '../define-plan.js';

const retry: PlanRetry = { strategy: 'immediate', max_attempts: 2 };
const once = { ...tool('pay'), tool: { implementation: 'builtin:echo' } };
const refusal = (path: string) => ({
  code: 'DEFINITION_INVALID',
  message: expect.stringContaining('declare its "safety"'),
  data: expect.objectContaining({ path }),
});

const plans: readonly [name: string, plan: PlanSpec, path: string][] = [
  ['a step', { steps: [{ loop: 'pay', retry }] }, '/composite/plan/steps/0/retry'],
  [
    'a scope',
    { steps: [{ type: 'scope', retry, scope: { steps: [{ loop: 'pay' }] } }] },
    '/composite/plan/steps/0/scope/steps/0/retry',
  ],
  ['the plan', { retry, steps: [{ loop: 'pay' }] }, '/composite/plan/steps/0/retry'],
  [
    'a step with the default number of attempts',
    { steps: [{ loop: 'pay', retry: { strategy: 'fixed' } }] },
    '/composite/plan/steps/0/retry',
  ],
  ['an action', { verbs: { pay: 'pay' }, steps: [{ action: 'pay 5', retry }] }, '/composite/plan/steps/0/retry'],
];

for (const [name, plan, path] of plans)
  verifies('plan.retry.once', `retries of ${name} that repeat a once tool are refused at registration`, async () => {
    expect(() => hostOf([once, planDefinition('main', plan)])).toThrow(expect.objectContaining(refusal(path)));
    const late = hostOf([planDefinition('main', plan), once]);
    const result = await late.run({ loop: 'main', input: {} });
    expect(result, 'the order of registration matters').toMatchObject({
      status: 'error',
      error: { code: 'DEFINITION_INVALID', message: expect.stringContaining(path) },
    });
    expect(() => hostOf([tool('pay'), planDefinition('main', plan)])).not.toThrow();
  });

verifies('plan.retry.once', 'retries in code are refused like those in a document', async () => {
  const pay = defineLoop({ id: 'pay', input: true, output: true, tool: () => 1 });
  const main = definePlan({ id: 'main', input: {}, steps: [{ loop: pay, retry }] });
  expect(() => hostOf([main])).toThrow(expect.objectContaining(refusal('/composite/plan/steps/0/retry')));
  const keyed = defineLoop({ id: 'pay', input: true, output: true, tool: () => 1, safety: 'keyed' });
  expect(() => hostOf([definePlan({ id: 'main', input: {}, steps: [{ loop: keyed, retry }] })])).not.toThrow();
});

for (const accepted of [
  { strategy: 'none' },
  { strategy: 'fixed', max_attempts: 1 },
  { strategy: 'none', fallback: 'escalate' },
] as const)
  verifies('plan.retry.once', `${JSON.stringify(accepted)} repeats nothing and is accepted`, () => {
    const plan: PlanSpec = { retry, steps: [{ loop: 'pay', retry: accepted }] };
    expect(() => hostOf([once, planDefinition('main', plan)])).not.toThrow();
  });

verifies('plan.retry.once', 'retry and cache of a once tool in TOML are refused', () => {
  for (const policy of ['retry = { attempts = 2 }', 'cache = { ttlMs = 1000 }']) {
    const text = `id = "pay"\nname = "pay"\nversion = "1.0.0"\nkind = "tool"\ninputSchema = true\noutputSchema = true\n[tool]\nimplementation = "builtin:echo"\n[policy]\n${policy}\n`;
    const register = () => hostOf([parseToml(text)]);
    expect(register).toThrow(
      expect.objectContaining({ code: 'DEFINITION_INVALID', message: expect.stringContaining('"keyed"') }),
    );
  }
});
