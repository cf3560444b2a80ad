import { expect } from 'vitest';
import { hostOf } from '../../../spec/support/host-fixture.js';
import { verifies } from '../../../spec/verifies.js';
import { LoopError } from '../../base/errors.js';
import type { Json } from '../../protocol/json.js';
import type { PolicySpec } from '../../protocol/loop.js';
import { defineLoop } from '../define.js';
import { defineAgent } from '../define-agent.js';
import type { PolicyOption } from '../model-ref.js';
import { type LoopForm, policyTable } from './policy-table.js';

type Key = keyof Required<PolicySpec>;

const SAMPLE: Required<PolicySpec> = {
  routing: [{ when: { promptLengthOver: 5 }, backend: { id: 'mock' } }],
  fallback: [{ id: 'mock' }],
  retry: { attempts: 2 },
  timeoutMs: 1000,
  rateLimit: { requests: 1, perMs: 1000 },
  cache: { ttlMs: 1000 },
  filters: { before: [{ pattern: 'secret' }] },
  approval: 'ask',
};

const base = { id: 'x', name: 'X', version: '1.0.0', inputSchema: true, outputSchema: true };
const steps = [{ loopId: 'y', inputMapping: '$.input' }];

/** Returns a policy as it is written in code, where a route names its `model`. */
function inCode({ routing, ...policy }: PolicySpec): PolicyOption {
  return {
    ...policy,
    ...(routing !== undefined && { routing: routing.map(({ when, backend: model }) => ({ when, model })) }),
  };
}

/** Makes a loop of each form with a policy: as a document and in code, where both exist. */
const makers: { readonly [form in LoopForm]: readonly ((policy: PolicySpec) => unknown)[] } = {
  prompt: [
    (policy) => ({ ...base, kind: 'prompt', prompt: { template: 'hi' }, backend: { id: 'mock' }, policy }),
    (policy) => defineLoop({ id: 'x', input: true, output: true, prompt: 'hi', model: 'mock', policy: inCode(policy) }),
  ],
  tool: [
    (policy) => ({ ...base, kind: 'tool', tool: { implementation: 'builtin:echo', safety: 'keyed' }, policy }),
    (policy) =>
      defineLoop({ id: 'x', input: true, output: true, tool: () => 1, safety: 'pure', policy: inCode(policy) }),
  ],
  agent: [
    (policy) => ({ ...base, kind: 'composite', composite: { agent: { backend: { id: 'mock' }, tools: [] } }, policy }),
    (policy) => defineAgent({ id: 'x', model: 'mock', policy: inCode(policy) }),
  ],
  steps: [(policy) => ({ ...base, kind: 'composite', composite: { steps }, policy })],
  code: [(policy) => defineLoop({ id: 'x', input: true, output: true, run: () => 1, policy: inCode(policy) })],
};

function refusalOf(register: () => unknown): LoopError | undefined {
  try {
    hostOf([register()]);
    return undefined;
  } catch (thrown) {
    expect(thrown).toBeInstanceOf(LoopError);
    return thrown as LoopError;
  }
}

for (const form of Object.keys(makers) as LoopForm[])
  for (const key of Object.keys(policyTable) as Key[]) {
    const applies = policyTable[key].appliesTo[form] !== undefined;
    verifies('policy.applies', `${key} on a loop of the form ${form} is ${applies ? 'accepted' : 'refused'}`, () => {
      for (const make of makers[form]) {
        const refusal = refusalOf(() => make({ [key]: SAMPLE[key] }));
        if (applies) expect(refusal).toBeUndefined();
        else {
          expect(refusal?.code).toBe('DEFINITION_INVALID');
          expect(refusal?.data).toMatchObject({ path: `/policy/${key}` });
          expect(refusal?.message).toContain(policyTable[key].advice);
        }
      }
    });
  }

verifies('policy.applies', 'retry and cache are refused on a tool with the safety once, which is the default', () => {
  for (const key of ['retry', 'cache'] as const)
    for (const safety of [undefined, 'once'] as const) {
      const policy = { [key]: SAMPLE[key] };
      const tool = { implementation: 'builtin:echo', ...(safety && { safety }) };
      const document = refusalOf(() => ({ ...base, kind: 'tool', tool, policy }));
      const code = refusalOf(() =>
        defineLoop({ id: 'x', input: true, output: true, tool: () => 1, policy, ...(safety && { safety }) }),
      );
      for (const refusal of [document, code]) {
        expect(refusal?.data).toMatchObject({ path: `/policy/${key}` });
        expect(refusal?.message).toContain('safety is "once"');
      }
    }
});

const prompt = (policy: Json): object => ({ ...base, kind: 'prompt', prompt: { template: 'hi' }, policy });
const route = { when: {}, backend: { id: 'mock' } };

const ineffective: readonly [policy: Json, path: string][] = [
  [{ fallback: [] }, '/policy/fallback'],
  [{ routing: [] }, '/policy/routing'],
  [{ filters: {} }, '/policy/filters'],
  [{ filters: { before: [] } }, '/policy/filters/before'],
  [{ filters: { after: [{ pattern: 'a', replacement: 'b' }] } }, '/policy/filters/after/0/replacement'],
  [
    { filters: { after: [{ pattern: 'a', action: 'refuse', replacement: 'b' }] } },
    '/policy/filters/after/0/replacement',
  ],
  [{ filters: { before: [{ pattern: 'a', action: 'redact', reason: 'b' }] } }, '/policy/filters/before/0/reason'],
  [{ routing: [route, { when: { promptLengthOver: 1 }, backend: { id: 'mock' } }] }, '/policy/routing/1'],
];

for (const [policy, path] of ineffective) {
  verifies(
    'policy.applies',
    `a part of a policy without effect is refused at ${path}: ${JSON.stringify(policy)}`,
    () => {
      expect(refusalOf(() => prompt(policy))?.data).toMatchObject({ path });
    },
  );
}

verifies('policy.applies', 'a policy on a step is refused with advice', () => {
  const [step] = steps;
  const composite = { steps: [{ ...step, policy: { timeoutMs: 5 } }] };
  const refusal = refusalOf(() => ({ ...base, kind: 'composite', composite }));
  expect(refusal?.data).toMatchObject({ path: '/composite/steps/0/policy' });
  expect(refusal?.message).toContain('put it on the loop that the step calls');
});

verifies('policy.applies', 'all keys without effect are reported together', () => {
  const policy = { cache: {}, filters: SAMPLE.filters, timeoutMs: 5 };
  const refusal = refusalOf(() => ({ ...base, kind: 'composite', composite: { steps }, policy }));
  expect(refusal?.data).toMatchObject({ flaws: [{ path: '/policy/filters' }, { path: '/policy/cache' }] });
});
