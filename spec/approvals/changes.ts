// A tool definition with every member, and more than forty changes of one member.

import type { Json } from '../../src/protocol/json.js';
import type { LoopDef } from '../../src/protocol/loop.js';

/** A definition that uses every member, so that each can be changed. */
export const PAY: LoopDef = {
  id: 'pay',
  name: 'Pay',
  description: 'Pays a person.',
  version: '1.0.0',
  inputSchema: {
    type: 'object',
    title: 'A payment',
    properties: { amount: { type: 'number', maximum: 100 }, to: { type: 'string' } },
    required: ['amount'],
  },
  outputSchema: { type: 'object', properties: { paid: { type: 'number' } } },
  kind: 'tool',
  tool: { implementation: 'builtin:act', config: { account: 'small', limits: { day: 5 } }, safety: 'idempotent' },
  policy: {
    approval: 'ask',
    timeoutMs: 60_000,
    retry: { attempts: 2, backoffMs: 10, factor: 2, maxBackoffMs: 100, jitter: 0 },
    rateLimit: { requests: 1000, perMs: 1000 },
    filters: {
      before: [{ pattern: 'iban', action: 'redact', replacement: '…' }],
      after: [{ pattern: 'secret', action: 'refuse' }],
    },
  },
  metadata: { owner: 'books', readOnly: false },
};

type Change = readonly [path: string, value: Json | undefined, without?: string];

/** A JSON Pointer, its new value (`undefined` removes it), and a member to remove because it would have no effect. */
export const CHANGES: readonly Change[] = [
  ['/name', 'Pay all'],
  ['/description', 'Reads a file.'],
  ['/description', 'Pays a person. '],
  ['/description', undefined],
  ['/inputSchema', true],
  ['/inputSchema/title', 'A gift'],
  ['/inputSchema/properties/amount/maximum', 1_000_000],
  ['/inputSchema/properties/amount/type', 'integer'],
  ['/inputSchema/properties/to', { type: ['string', 'null'] }],
  ['/inputSchema/properties/memo', { type: 'string' }],
  ['/inputSchema/required', ['amount', 'memo']],
  ['/inputSchema/required', []],
  ['/inputSchema/additionalProperties', false],
  ['/outputSchema', true],
  ['/outputSchema', false],
  ['/outputSchema/properties/paid', { type: 'string' }],
  ['/tool/implementation', 'builtin:evil'],
  ['/tool/config/account', 'large'],
  ['/tool/config/limits/day', 5_000_000],
  ['/tool/config/extra', true],
  ['/tool/config', undefined],
  ['/tool/safety', 'pure'],
  ['/tool/safety', 'keyed'],
  ['/tool/safety', 'once', '/policy/retry'],
  ['/tool/safety', undefined, '/policy/retry'],
  ['/policy/timeoutMs', 1],
  ['/policy/timeoutMs', undefined],
  ['/policy/retry/attempts', 19],
  ['/policy/retry/backoffMs', 0],
  ['/policy/retry', undefined],
  ['/policy/rateLimit/requests', 1],
  ['/policy/rateLimit', undefined],
  ['/policy/filters/before/0/pattern', 'x'],
  ['/policy/filters/before/0/action', 'refuse', '/policy/filters/before/0/replacement'],
  ['/policy/filters/after', undefined],
  ['/policy/filters', undefined],
  ['/policy/cache', { ttlMs: 1000 }],
  ['/metadata/owner', 'mallory'],
  ['/metadata/readOnly', true],
  ['/metadata', undefined],
  ['/policy/approval', 'always_allow'],
  ['/policy/approval', 'blocked'],
  ['/policy/approval', undefined],
  ['/policy', undefined],
];

/** Returns the definition with one change. */
export function changed([path, value, without]: Change): LoopDef {
  const copy = structuredClone(PAY) as unknown as Record<string, unknown>;
  if (without !== undefined) set(copy, without, undefined);
  set(copy, path, value);
  return copy as unknown as LoopDef;
}

function set(document: Record<string, unknown>, path: string, value: Json | undefined): void {
  const steps = path.split('/').slice(1);
  const last = steps.pop() ?? '';
  let parent = document;
  for (const step of steps) parent = parent[step] as Record<string, unknown>;
  if (value === undefined) delete parent[last];
  else parent[last] = value;
}

/** True if a definition requires an approval. */
export function asks({ policy }: LoopDef): boolean {
  return policy?.approval === 'ask';
}
