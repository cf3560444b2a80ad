// Generates broken definitions: valid ones with random changes, as values and as text.

import { stringify } from 'smol-toml';
import { seededRandom } from '../../src/adapters/system/seeded-ids.js';

/** An object of a definition. */
type Fields = { [name: string]: unknown };
type Pick = <T>(list: readonly T[]) => T;
/** Seeded randomness. */
export interface RandomSource {
  /** Returns a number from 0 (inclusive) to 1 (exclusive). */
  readonly next: () => number;
  /** Returns an integer from 0 (inclusive) to `limit` (exclusive). */
  readonly below: (limit: number) => number;
  readonly pick: Pick;
}

/** Creates a random source that returns the same values for the same seed. */
export function randomFrom(seed: number): RandomSource {
  const next = seededRandom(seed);
  const below = (limit: number): number => Math.floor(next() * limit);
  return { next, below, pick: (list) => list[below(list.length)] as (typeof list)[number] };
}

const plainTexts = [
  'a',
  'input',
  'steps',
  'first',
  '$.input',
  '$.steps[0]',
  "$['first']",
  '{{name}}',
  '{{a.b}} x',
  'literal:x',
  'é😀',
];
const strangeTexts = [
  '',
  ' ',
  '\u0000',
  '\ud800',
  '\udfff\ud800',
  '{{',
  '}}',
  '{{a',
  '{{a..b}}',
  '$',
  '$.',
  '$[',
  '$.steps[',
  '$.steps[99999999999999999999]',
  '$..*',
  '__proto__',
  'constructor',
  'toString',
  '../../etc/passwd',
  '1.0.0',
  'v1',
  '\u202e',
  '\ufeff',
  'x'.repeat(5000),
  '\\',
  '"""',
  "'''",
];
/** Keys that a definition does not have or that are dangerous. */
export const keys = [
  '__proto__',
  'constructor',
  'prototype',
  'hasOwnProperty',
  'polcy',
  'Policy',
  'inputschema',
  'prompt',
  'tool',
  'composite',
  'steps',
  'policy',
  'retry',
  'x-y',
  '$schema',
  '',
  'a/b~c',
  '\ud800',
  'id',
  'k'.repeat(300),
  'when',
  'backend',
  'toJSON',
  'then',
];
const values: readonly unknown[] = [
  null,
  true,
  false,
  0,
  -1,
  1.5,
  1e21,
  -0,
  Number.MAX_SAFE_INTEGER,
  [],
  {},
  [[]],
  [null],
  { a: { b: [1] } },
  { polluted: true },
];

function scalar(random: RandomSource): unknown {
  const { next, pick } = random;
  if (next() < 0.4) return pick(strangeTexts);
  return next() < 0.5 ? pick(plainTexts) : structuredClone(pick(values));
}

function body(kind: string, { pick, below }: RandomSource): unknown {
  if (kind === 'tool') {
    return {
      implementation: pick(['builtin:echo', 'exec:./a', 'http:https://x']),
      safety: pick(['pure', 'once', 'keyed']),
    };
  }
  if (kind === 'prompt')
    return {
      template: pick(['{{name}}', 'plain', '{{a.b}} {{ c }}']),
      maxTokens: 1 + below(99),
      temperature: below(3),
    };
  const steps = Array.from({ length: 1 + below(5) }, (_, index) => ({
    loopId: pick(['a', 'b-c', 'd.e']),
    inputMapping: pick<unknown>([
      { x: '$.input.y' },
      '$',
      'literal:z',
      index > 0 ? `$.steps[${index - 1}].output` : '$.input',
    ]),
    ...(below(2) === 0 ? { outputBinding: `step_${index}` } : {}),
  }));
  return { steps, ...(below(2) === 0 ? { outputMapping: { out: `$.steps[${steps.length - 1}].output` } } : {}) };
}

function policy({ pick, below }: RandomSource): Fields {
  return {
    retry: { attempts: 1 + below(20), backoffMs: below(1000), jitter: 0.5 },
    timeoutMs: 1 + below(5000),
    filters: { before: [{ pattern: pick(['a+', '(x|y)*z', '[0-9]{3}']), action: 'redact' }] },
    routing: [{ when: { promptLengthOver: below(50), input: { '$.a': 1 } }, backend: { id: 'mock' } }],
    approval: pick(['ask', 'blocked', 'always_allow']),
  };
}

function validDefinition(random: RandomSource): Fields {
  const kind = random.pick(['prompt', 'tool', 'composite']);
  return {
    id: `loop-${random.below(99)}`,
    name: 'A loop',
    version: `${random.below(9)}.0.0-rc.${random.below(9)}`,
    inputSchema: { type: 'object', properties: { constructor: { type: 'string' } } },
    outputSchema: random.pick<unknown>([true, { type: 'object' }]),
    kind,
    [kind]: body(kind, random),
    ...(random.below(2) === 0 ? { policy: policy(random) } : {}),
    ...(random.below(3) === 0
      ? { backend: { id: 'mock', options: { n: 1 } }, metadata: { tags: ['a'] }, 'x-note': [1] }
      : {}),
  };
}

/** Returns a random object or list of a document, or its root. */
export function randomObject(root: Fields, { next, pick }: RandomSource): Fields {
  let current = root;
  for (;;) {
    const inner = Object.values(current).filter(
      (value): value is Fields => typeof value === 'object' && value !== null,
    );
    if (inner.length === 0 || next() < 0.25) return current;
    current = pick(inner);
  }
}

function deep(random: RandomSource): unknown {
  let value: unknown = 1;
  for (let depth = random.below(300); depth > 0; depth--) value = depth % 2 === 0 ? [value] : { a: value };
  return value;
}

/** Sets an own property, also for keys such as `__proto__`. */
export function define(target: Fields, key: string, value: unknown): void {
  Object.defineProperty(target, key, { value, enumerable: true, configurable: true, writable: true });
}

function breakSomething(root: Fields, random: RandomSource): void {
  const target = randomObject(root, random);
  const existing = Object.keys(target);
  const key = existing.length === 0 ? random.pick(keys) : random.pick(existing);
  const kind = random.below(7);
  if (kind === 0) delete target[key];
  else if (kind === 1) define(target, random.pick(keys), scalar(random));
  else if (kind === 2) define(target, key, deep(random));
  else if (kind === 3) define(target, `${key.slice(1)}${key.slice(0, 1)}`, target[key]);
  else if (kind === 4) define(target, key, randomObject(validDefinition(random), random));
  else define(target, key, scalar(random));
}

/** Returns a definition with up to three random changes; a fifth of them stays valid. */
export function randomDefinition(random: RandomSource): Fields {
  const root = validDefinition(random);
  if (random.next() < 0.2) return root;
  for (let times = 1 + random.below(3); times > 0; times--) breakSomething(root, random);
  return root;
}

const fragments = [
  '"',
  '\\',
  '{',
  '}',
  '[',
  ']',
  ',',
  ':',
  '=',
  '\n',
  '\r',
  '\u0000',
  '\ufeff',
  '\ud800',
  '😀',
  '#',
  '//',
  '1e999',
  '-',
  'null',
  '"""',
  "'''",
  '[[',
  ']]',
  '__proto__',
  '0x',
  '1979-05-27',
];

/** Replaces, removes or repeats random parts of a text. */
export function scramble(text: string, { below, pick, next }: RandomSource): string {
  let scrambled = text;
  for (let times = 1 + below(4); times > 0; times--) {
    const at = below(scrambled.length + 1);
    const end = Math.min(scrambled.length, at + below(20));
    const middle = next() < 0.5 ? pick(fragments) : next() < 0.5 ? '' : scrambled.slice(at, end).repeat(2);
    scrambled = next() < 0.1 ? scrambled.slice(0, at) : scrambled.slice(0, at) + middle + scrambled.slice(end);
  }
  return scrambled;
}

/** Converts a definition to TOML, or to broken TOML if it cannot be represented. */
export function asToml(value: Fields): string {
  try {
    return stringify(value);
  } catch {
    return `id = ${JSON.stringify(value.id ?? 0)}\n[composite]\nsteps = ${JSON.stringify(value)}`;
  }
}

/** Returns a value that only code can create. */
export function codeOnlyValue({ pick, below }: RandomSource): unknown {
  const cyclic: Fields = {};
  cyclic.again = [cyclic, cyclic];
  const throws = {
    get a(): never {
      throw new TypeError('no');
    },
  };
  const endless: object = new Proxy(
    {},
    {
      ownKeys: () => ['a'],
      get: () => endless,
      getOwnPropertyDescriptor: () => ({ enumerable: true, configurable: true, value: 1 }),
    },
  );
  return pick<unknown>([
    undefined,
    Number.NaN,
    Number.POSITIVE_INFINITY,
    1n,
    Symbol('s'),
    () => 1,
    new Date(below(9)),
    new Map(),
    /x/,
    new Error('e'),
    new Uint8Array(3),
    cyclic,
    throws,
    endless,
    new Array(1e9),
    Object.create({ inherited: 1 }),
    Object.create(null),
    new Proxy([], {}),
    Promise.resolve(1),
    { toJSON: () => 1 },
    'x'.repeat(2_000_000),
  ]);
}
