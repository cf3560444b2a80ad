// Definitions that were good once, and what becomes of them under a throw of dice.

import { stringify } from 'smol-toml';
import { seededRandom } from '../../src/adapters/system/seeded-ids.js';

export type Fields = { [name: string]: unknown };
type Pick = <T>(list: readonly T[]) => T;
export interface Dice {
  readonly random: () => number;
  readonly upTo: (most: number) => number;
  readonly pick: Pick;
}

export function diceOf(seed: number): Dice {
  const random = seededRandom(seed);
  const upTo = (most: number): number => Math.floor(random() * most);
  return { random, upTo, pick: (list) => list[upTo(list.length)] as (typeof list)[number] };
}

const words = [
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
const strange = [
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

function scalar(dice: Dice): unknown {
  const { random, pick } = dice;
  if (random() < 0.4) return pick(strange);
  return random() < 0.5 ? pick(words) : structuredClone(pick(values));
}

function body(kind: string, { pick, upTo }: Dice): unknown {
  if (kind === 'tool') {
    return {
      implementation: pick(['builtin:echo', 'exec:./a', 'http:https://x']),
      safety: pick(['pure', 'once', 'keyed']),
    };
  }
  if (kind === 'prompt')
    return { template: pick(['{{name}}', 'plain', '{{a.b}} {{ c }}']), maxTokens: 1 + upTo(99), temperature: upTo(3) };
  const steps = Array.from({ length: 1 + upTo(5) }, (_, index) => ({
    loopId: pick(['a', 'b-c', 'd.e']),
    inputMapping: pick<unknown>([
      { x: '$.input.y' },
      '$',
      'literal:z',
      index > 0 ? `$.steps[${index - 1}].output` : '$.input',
    ]),
    ...(upTo(2) === 0 ? { outputBinding: `step_${index}` } : {}),
  }));
  return { steps, ...(upTo(2) === 0 ? { outputMapping: { out: `$.steps[${steps.length - 1}].output` } } : {}) };
}

function policy({ pick, upTo }: Dice): Fields {
  return {
    retry: { attempts: 1 + upTo(20), backoffMs: upTo(1000), jitter: 0.5 },
    timeoutMs: 1 + upTo(5000),
    filters: { before: [{ pattern: pick(['a+', '(x|y)*z', '[0-9]{3}']), action: 'redact' }] },
    routing: [{ when: { promptLengthOver: upTo(50), input: { '$.a': 1 } }, backend: { id: 'mock' } }],
    approval: pick(['ask', 'blocked', 'always_allow']),
  };
}

function good(dice: Dice): Fields {
  const kind = dice.pick(['prompt', 'tool', 'composite']);
  return {
    id: `loop-${dice.upTo(99)}`,
    name: 'A loop',
    version: `${dice.upTo(9)}.0.0-rc.${dice.upTo(9)}`,
    inputSchema: { type: 'object', properties: { constructor: { type: 'string' } } },
    outputSchema: dice.pick<unknown>([true, { type: 'object' }]),
    kind,
    [kind]: body(kind, dice),
    ...(dice.upTo(2) === 0 ? { policy: policy(dice) } : {}),
    ...(dice.upTo(3) === 0
      ? { backend: { id: 'mock', options: { n: 1 } }, metadata: { tags: ['a'] }, 'x-note': [1] }
      : {}),
  };
}

/** Some object or list inside, the root included. */
export function somewhere(root: Fields, { random, pick }: Dice): Fields {
  let place = root;
  for (;;) {
    const inner = Object.values(place).filter((value): value is Fields => typeof value === 'object' && value !== null);
    if (inner.length === 0 || random() < 0.25) return place;
    place = pick(inner);
  }
}

function deep(dice: Dice): unknown {
  let value: unknown = 1;
  for (let depth = dice.upTo(300); depth > 0; depth--) value = depth % 2 === 0 ? [value] : { a: value };
  return value;
}

export function define(place: Fields, key: string, value: unknown): void {
  Object.defineProperty(place, key, { value, enumerable: true, configurable: true, writable: true });
}

function breakSomething(root: Fields, dice: Dice): void {
  const place = somewhere(root, dice);
  const known = Object.keys(place);
  const key = known.length === 0 ? dice.pick(keys) : dice.pick(known);
  const turn = dice.upTo(7);
  if (turn === 0) delete place[key];
  else if (turn === 1) define(place, dice.pick(keys), scalar(dice));
  else if (turn === 2) define(place, key, deep(dice));
  else if (turn === 3) define(place, `${key.slice(1)}${key.slice(0, 1)}`, place[key]);
  else if (turn === 4) define(place, key, somewhere(good(dice), dice));
  else define(place, key, scalar(dice));
}

/** A value that was good once; a fifth stays good. */
export function document(dice: Dice): Fields {
  const root = good(dice);
  if (dice.random() < 0.2) return root;
  for (let times = 1 + dice.upTo(3); times > 0; times--) breakSomething(root, dice);
  return root;
}

const scraps = [
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

export function scramble(text: string, { upTo, pick, random }: Dice): string {
  let scrambled = text;
  for (let times = 1 + upTo(4); times > 0; times--) {
    const at = upTo(scrambled.length + 1);
    const end = Math.min(scrambled.length, at + upTo(20));
    const middle = random() < 0.5 ? pick(scraps) : random() < 0.5 ? '' : scrambled.slice(at, end).repeat(2);
    scrambled = random() < 0.1 ? scrambled.slice(0, at) : scrambled.slice(0, at) + middle + scrambled.slice(end);
  }
  return scrambled;
}

export function asToml(value: Fields): string {
  try {
    return stringify(value);
  } catch {
    return `id = ${JSON.stringify(value.id ?? 0)}\n[composite]\nsteps = ${JSON.stringify(value)}`;
  }
}

/** Values that only code can make. */
export function alien({ pick, upTo }: Dice): unknown {
  const cyclic: Fields = {};
  cyclic.again = [cyclic, cyclic];
  const throws = {
    get a(): never {
      throw new TypeError('no');
    },
  };
  const bottomless: object = new Proxy(
    {},
    {
      ownKeys: () => ['a'],
      get: () => bottomless,
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
    new Date(upTo(9)),
    new Map(),
    /x/,
    new Error('e'),
    new Uint8Array(3),
    cyclic,
    throws,
    bottomless,
    new Array(1e9),
    Object.create({ inherited: 1 }),
    Object.create(null),
    new Proxy([], {}),
    Promise.resolve(1),
    { toJSON: () => 1 },
    'x'.repeat(2_000_000),
  ]);
}
