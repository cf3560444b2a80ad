/** The functions that an expression can call. None of them is recursive, uses a regular expression or reads a clock. */
import type { Json } from '../../protocol/json.js';
import { CelFailure, type StepCounter } from './failure.js';

/** The kinds of values; `dyn` is any of them. */
export type ValueKind = 'null' | 'boolean' | 'number' | 'string' | 'list' | 'map' | 'dyn';

/** A function. The receiver of a method is its first argument. */
export interface CelFunction {
  readonly name: string;
  readonly isMethod: boolean;
  /** The kinds that each argument may have. */
  readonly params: readonly (readonly ValueKind[])[];
  readonly result: ValueKind;
  /** True if the result is an integer, so that a division of it is an integer division. */
  readonly isInteger: boolean;
  apply(args: readonly Json[], steps: StepCounter): Json;
}

const anyKind: readonly ValueKind[] = ['null', 'boolean', 'number', 'string', 'list', 'map'];
const CHARS_PER_STEP = 64;

function countCodePoints(text: string): number {
  let count = 0;
  for (const _ of text) count++;
  return count;
}

function sizeOf([value]: readonly Json[], steps: StepCounter): number {
  if (typeof value === 'string') {
    steps.charge(value.length / CHARS_PER_STEP);
    return countCodePoints(value);
  }
  if (Array.isArray(value)) return value.length;
  const count = Object.keys(value as object).length;
  steps.charge(count / CHARS_PER_STEP);
  return count;
}

type TextFunction = (text: string, argument: string) => Json;

/** A method of a text, with at most one argument that is a text. */
function textMethod(name: string, arity: 0 | 1, result: ValueKind, apply: TextFunction): CelFunction {
  return {
    name,
    isMethod: true,
    params: Array.from({ length: arity + 1 }, () => ['string' as const]),
    result,
    isInteger: false,
    apply: ([text, argument = ''], steps) => {
      const [chars, argumentChars] = [(text as string).length, (argument as string).length];
      // A search may compare the argument at every position.
      steps.charge((chars / CHARS_PER_STEP) * (argumentChars / CHARS_PER_STEP + 1));
      return apply(text as string, argument as string);
    },
  };
}

function conversion(name: string, from: readonly ValueKind[], to: ValueKind, convert: (value: Json) => Json) {
  const apply = ([value = null]: readonly Json[]): Json => convert(value);
  return { name, isMethod: false, params: [from], result: to, isInteger: name === 'int', apply };
}

function toNumber(value: Json): number {
  const text = typeof value === 'string' ? value.trim() : value;
  const number = text === '' ? Number.NaN : Number(text);
  if (Number.isFinite(number)) return number;
  throw new CelFailure(`${JSON.stringify(String(value).slice(0, 40))} is not a number`);
}

function toBoolean(value: Json): boolean {
  if (value === true || value === 'true') return true;
  if (value === false || value === 'false') return false;
  throw new CelFailure(`${JSON.stringify(String(value).slice(0, 40))} is neither "true" nor "false"`);
}

function join([list, separator = '']: readonly Json[], steps: StepCounter): string {
  const texts = list as readonly Json[];
  let chars = 0;
  for (const text of texts) {
    if (typeof text !== 'string') throw new CelFailure('join() needs a list of strings');
    chars += text.length + (separator as string).length;
  }
  steps.charge((chars + texts.length) / CHARS_PER_STEP);
  return texts.join(separator as string);
}

const sizable: readonly ValueKind[] = ['string', 'list', 'map'];
const scalars: readonly ValueKind[] = ['boolean', 'number', 'string'];

const functions: readonly CelFunction[] = [
  { name: 'size', isMethod: false, params: [sizable], result: 'number', isInteger: true, apply: sizeOf },
  { name: 'size', isMethod: true, params: [sizable], result: 'number', isInteger: true, apply: sizeOf },
  textMethod('contains', 1, 'boolean', (text, part) => text.includes(part)),
  textMethod('startsWith', 1, 'boolean', (text, part) => text.startsWith(part)),
  textMethod('endsWith', 1, 'boolean', (text, part) => text.endsWith(part)),
  textMethod('lowerAscii', 0, 'string', (text) => text.replace(/[A-Z]/g, (letter) => letter.toLowerCase())),
  textMethod('upperAscii', 0, 'string', (text) => text.replace(/[a-z]/g, (letter) => letter.toUpperCase())),
  textMethod('trim', 0, 'string', (text) => text.trim()),
  textMethod('split', 1, 'list', (text, separator) => text.split(separator)),
  { name: 'join', isMethod: true, params: [['list']], result: 'string', isInteger: false, apply: join },
  { name: 'join', isMethod: true, params: [['list'], ['string']], result: 'string', isInteger: false, apply: join },
  conversion('int', ['number', 'string'], 'number', (value) => Math.trunc(toNumber(value))),
  conversion('double', ['number', 'string'], 'number', toNumber),
  conversion('string', scalars, 'string', String),
  conversion('bool', ['boolean', 'string'], 'boolean', toBoolean),
  conversion('dyn', anyKind, 'dyn', (value) => value),
];

/** The names of all functions, each once. */
export const functionNames: readonly string[] = [...new Set(functions.map(({ name }) => name))];

/** Returns the function of a name; undefined if there is none with this number of arguments (with the receiver). */
export function findFunction(name: string, isMethod: boolean, argCount: number): CelFunction | undefined {
  return functions.find((one) => one.name === name && one.isMethod === isMethod && one.params.length === argCount);
}

/** Returns the kind of a JSON value. */
export function kindOf(value: Json): ValueKind {
  if (value === null) return 'null';
  if (Array.isArray(value)) return 'list';
  const type = typeof value;
  return type === 'object' ? 'map' : (type as 'boolean' | 'number' | 'string');
}

/** Returns a kind with its article, for messages. */
export function describeKind(kind: ValueKind): string {
  if (kind === 'null') return 'null';
  return kind === 'map' ? 'an object' : `a ${kind}`;
}
