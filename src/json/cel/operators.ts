/** The operators with two operands: equality, order, membership and arithmetic of JSON values. */
import type { Json, JsonObject } from '../../protocol/json.js';
import type { CelEvaluator } from './evaluate.js';
import { CelFailure, type StepCounter } from './failure.js';
import { describeKind, kindOf } from './functions.js';
import type { CelNode } from './syntax.js';

type BinaryNode = Extract<CelNode, { kind: 'binary' }>;

const CHARS_PER_STEP = 64;

/** Compiles an operator. */
export function compileBinary(node: BinaryNode, left: CelEvaluator, right: CelEvaluator): CelEvaluator {
  switch (node.operator) {
    case '==':
      return (frame) => isEqual(left(frame), right(frame), frame.steps);
    case '!=':
      return (frame) => !isEqual(left(frame), right(frame), frame.steps);
    case 'in':
      return (frame) => isMember(left(frame), right(frame), node, frame.steps);
    case '<':
      return (frame) => order(left(frame), right(frame), node) < 0;
    case '<=':
      return (frame) => order(left(frame), right(frame), node) <= 0;
    case '>':
      return (frame) => order(left(frame), right(frame), node) > 0;
    case '>=':
      return (frame) => order(left(frame), right(frame), node) >= 0;
    case '+':
      return (frame) => add(left(frame), right(frame), node, frame.steps);
    default:
      return compileArithmetic(node, left, right);
  }
}

/** Returns true for an expression that is an integer by its syntax, as a literal, a size or their sum. */
function isInteger(node: CelNode): boolean {
  switch (node.kind) {
    case 'literal':
      return node.isInteger;
    case 'call':
      return node.called.isInteger;
    case 'negate':
      return isInteger(node.operand);
    case 'binary':
      return isInteger(node.left) && isInteger(node.right);
    default:
      return false;
  }
}

function compileArithmetic(node: BinaryNode, left: CelEvaluator, right: CelEvaluator): CelEvaluator {
  const compute = arithmeticOf(node);
  return (frame) => {
    const [a, b] = [left(frame), right(frame)];
    if (typeof a !== 'number' || typeof b !== 'number') throw noOverload(a, b, node);
    return compute(a, b);
  };
}

function arithmeticOf(node: BinaryNode): (a: number, b: number) => number {
  const nonZero = (divisor: number): number => {
    if (divisor === 0) throw new CelFailure(`${node.text} divides by zero`);
    return divisor;
  };
  if (node.operator === '-') return (a, b) => a - b;
  if (node.operator === '*') return (a, b) => a * b;
  if (node.operator === '%') return (a, b) => a % nonZero(b);
  return isInteger(node) ? (a, b) => Math.trunc(a / nonZero(b)) : (a, b) => a / nonZero(b);
}

function noOverload(a: Json, b: Json, { text, operator }: BinaryNode): CelFailure {
  const kinds = `${describeKind(kindOf(a))} and ${describeKind(kindOf(b))}`;
  return new CelFailure(`${operator} cannot be applied to ${kinds}: ${text}`);
}

function add(a: Json, b: Json, node: BinaryNode, steps: StepCounter): Json {
  if (typeof a === 'number' && typeof b === 'number') return a + b;
  if (typeof a === 'string' && typeof b === 'string') {
    steps.charge((a.length + b.length) / CHARS_PER_STEP);
    return a + b;
  }
  if (!Array.isArray(a) || !Array.isArray(b)) throw noOverload(a, b, node);
  steps.charge(a.length + b.length);
  return [...a, ...b];
}

/** Returns a number below, equal to or above zero, or NaN if neither holds. */
function order(a: Json, b: Json, node: BinaryNode): number {
  if (typeof a === 'number' && typeof b === 'number') return a < b ? -1 : a > b ? 1 : a === b ? 0 : Number.NaN;
  if (typeof a === 'string' && typeof b === 'string') return a < b ? -1 : a > b ? 1 : 0;
  throw noOverload(a, b, node);
}

function isMember(value: Json, collection: Json, node: BinaryNode, steps: StepCounter): boolean {
  if (Array.isArray(collection)) return collection.some((element: Json) => isEqual(value, element, steps));
  const isMap = typeof collection === 'object' && collection !== null;
  if (isMap) return typeof value === 'string' && Object.hasOwn(collection, value);
  throw new CelFailure(`${node.right.text} is ${describeKind(kindOf(collection))}, not a list or an object`);
}

/** Compares two values deeply. Values of different kinds are not equal. */
function isEqual(a: Json, b: Json, steps: StepCounter): boolean {
  steps.charge(1);
  if (typeof a !== 'object' || typeof b !== 'object' || a === null || b === null) return a === b;
  if (Array.isArray(a) || Array.isArray(b)) {
    if (!Array.isArray(a) || !Array.isArray(b) || a.length !== b.length) return false;
    return a.every((element: Json, index) => isEqual(element, b[index] ?? null, steps));
  }
  const names = Object.keys(a);
  steps.charge(names.length);
  if (names.length !== Object.keys(b).length) return false;
  return names.every(
    (name) =>
      Object.hasOwn(b, name) && isEqual((a as JsonObject)[name] ?? null, (b as JsonObject)[name] ?? null, steps),
  );
}
