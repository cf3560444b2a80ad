/**
 * Compiles the syntax tree of an expression into functions that evaluate it over JSON values. A number is a JSON number,
 * whether it is written `1` or `1.0`; only the division of numbers that are integers by their syntax, such as literals
 * and sizes, is an integer division. Only own properties are read. As CEL requires, `&&`, `||`, `all` and `exists`
 * ignore a failure of an operand that the result does not depend on.
 */
import type { Json, JsonObject } from '../../protocol/json.js';
import { CelFailure, CelLimitFailure, StepCounter } from './failure.js';
import { describeKind, kindOf } from './functions.js';
import { compileBinary } from './operators.js';
import type { CelComprehension, CelNode } from './syntax.js';
import { nodeCount } from './syntax.js';

/** The maximum number of elements over which a macro iterates. */
const MAX_ELEMENTS = 10_000;
/** The steps of a failure that an operator catches: it costs far more than a value. */
const FAILURE_STEPS = 50;

/** The data of one evaluation. */
export interface CelFrame {
  readonly data: JsonObject;
  readonly steps: StepCounter;
  /** The values of the loop variables, the outermost first. */
  readonly loopValues: Json[];
}

/** Evaluates a node. Throws CelFailure if it has no value. */
export type CelEvaluator = (frame: CelFrame) => Json;

/** Compiles an expression. The function throws CelFailure if the expression has no value for the data. */
export function compileCel(root: CelNode): (data: JsonObject) => Json {
  const evaluate = compileNode(root, []);
  return (data) => evaluate({ data, steps: new StepCounter(), loopValues: [] });
}

/** Returns an own member of an object; undefined if there is none. */
function ownMember(value: Json, name: string): Json | undefined {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return undefined;
  return Object.hasOwn(value, name) ? (value as JsonObject)[name] : undefined;
}

function compileNode(node: CelNode, loopVariables: readonly string[]): CelEvaluator {
  const child = (one: CelNode): CelEvaluator => compileNode(one, loopVariables);
  switch (node.kind) {
    case 'literal': {
      const { value } = node;
      return () => value;
    }
    case 'name':
      return compileName(node.name, loopVariables);
    case 'member':
      return compileMember(node, child(node.target));
    case 'has': {
      const target = child(node.target);
      return (frame) => ownMember(target(frame), node.name) !== undefined;
    }
    case 'index':
      return compileIndex(node, child(node.target), child(node.index));
    case 'list': {
      const items = node.items.map(child);
      return (frame) => items.map((item) => item(frame));
    }
    case 'map':
      return compileMap(node.entries.map(([key, value]) => [child(key), child(value)] as const));
    case 'not': {
      const operand = compileBoolean(node.operand, loopVariables);
      return (frame) => !operand(frame);
    }
    case 'negate': {
      const operand = child(node.operand);
      return (frame) => -asNumber(operand(frame), node.operand);
    }
    case 'and':
      return compileLogical(node.left, node.right, false, loopVariables);
    case 'or':
      return compileLogical(node.left, node.right, true, loopVariables);
    case 'binary':
      return compileBinary(node, child(node.left), child(node.right));
    case 'conditional': {
      const condition = compileBoolean(node.condition, loopVariables);
      const [whenTrue, whenFalse] = [child(node.whenTrue), child(node.whenFalse)];
      return (frame) => (condition(frame) ? whenTrue(frame) : whenFalse(frame));
    }
    case 'call':
      return compileCall(node, node.args.map(child));
    case 'comprehension':
      return compileComprehension(node, loopVariables);
  }
}

function compileName(name: string, loopVariables: readonly string[]): CelEvaluator {
  const slot = loopVariables.lastIndexOf(name);
  if (slot !== -1) return ({ loopValues }) => loopValues[slot] ?? null;
  return ({ data }) => {
    const value = Object.hasOwn(data, name) ? data[name] : undefined;
    if (value === undefined) throw new CelFailure(`${name} has no value`);
    return value;
  };
}

function compileMember({ text, name }: { text: string; name: string }, target: CelEvaluator): CelEvaluator {
  return (frame) => {
    const value = target(frame);
    const member = ownMember(value, name);
    if (member !== undefined) return member;
    const kind = kindOf(value);
    const reason = kind === 'map' ? '' : `: the value before it is ${describeKind(kind)}`;
    throw new CelFailure(`${text} is absent${reason}`);
  };
}

function compileIndex({ text }: CelNode, target: CelEvaluator, index: CelEvaluator): CelEvaluator {
  return (frame) => {
    const [list, at] = [target(frame), index(frame)];
    const isElement = Array.isArray(list) && typeof at === 'number' && Number.isInteger(at);
    const value: Json | undefined = isElement ? list[at] : typeof at === 'string' ? ownMember(list, at) : undefined;
    if (value !== undefined) return value;
    throw new CelFailure(`${text} is absent`);
  };
}

function compileMap(entries: readonly (readonly [key: CelEvaluator, value: CelEvaluator])[]): CelEvaluator {
  return (frame) => {
    const map = Object.create(null) as { [key: string]: Json };
    for (const [key, value] of entries) {
      const name = key(frame);
      if (typeof name !== 'string') throw new CelFailure('the keys of an object must be strings');
      map[name] = value(frame);
    }
    return map;
  };
}

function asNumber(value: Json, { text }: CelNode): number {
  if (typeof value === 'number') return value;
  throw new CelFailure(`${text} is ${describeKind(kindOf(value))}, not a number`);
}

function compileBoolean(node: CelNode, loopVariables: readonly string[]): (frame: CelFrame) => boolean {
  const evaluate = compileNode(node, loopVariables);
  return (frame) => {
    const value = evaluate(frame);
    if (typeof value === 'boolean') return value;
    throw new CelFailure(`${node.text} is ${describeKind(kindOf(value))}, not true or false`);
  };
}

/** Calls a function that may fail, and returns its failure as a value. Limits are not caught. */
function attempt<T>(frame: CelFrame, evaluate: (frame: CelFrame) => T): T | CelFailure {
  const depth = frame.loopValues.length;
  try {
    return evaluate(frame);
  } catch (error) {
    if (!(error instanceof CelFailure) || error instanceof CelLimitFailure) throw error;
    frame.steps.charge(FAILURE_STEPS);
    frame.loopValues.length = depth;
    return error;
  }
}

/** Compiles `&&` and `||`: one operand with the deciding value decides, even if the other one fails. */
function compileLogical(
  leftNode: CelNode,
  rightNode: CelNode,
  deciding: boolean,
  loopVariables: readonly string[],
): CelEvaluator {
  const left = compileBoolean(leftNode, loopVariables);
  const right = compileBoolean(rightNode, loopVariables);
  return (frame) => {
    const first = attempt(frame, left);
    if (first === deciding || right(frame) === deciding) return deciding;
    if (first instanceof CelFailure) throw first;
    return !deciding;
  };
}

function compileCall(
  { text, called, args: argNodes }: Extract<CelNode, { kind: 'call' }>,
  args: readonly CelEvaluator[],
): CelEvaluator {
  return (frame) => {
    const values = args.map((argument) => argument(frame));
    for (let i = 0; i < values.length; i++) {
      const kind = kindOf(values[i] ?? null);
      if (!called.params[i]?.includes(kind))
        throw new CelFailure(
          `${argNodes[i]?.text} is ${describeKind(kind)}, which ${called.name}() cannot use: ${text}`,
        );
    }
    return called.apply(values, frame.steps);
  };
}

/** Returns the elements of a list or the keys of a map. */
function elementsOf(value: Json, { text }: CelNode): readonly Json[] {
  if (typeof value !== 'object' || value === null)
    throw new CelFailure(`${text} is ${describeKind(kindOf(value))}, not a list`);
  const elements = Array.isArray(value) ? value : Object.keys(value);
  if (elements.length > MAX_ELEMENTS)
    throw new CelLimitFailure(`${text} has ${elements.length} elements; the limit is ${MAX_ELEMENTS}`);
  return elements;
}

type CompiledBody = (frame: CelFrame, elements: readonly Json[]) => Json;

function compileComprehension(node: CelComprehension, outerVariables: readonly string[]): CelEvaluator {
  const loopVariables = [...outerVariables, node.variable];
  const list = compileNode(node.list, outerVariables);
  const slot = outerVariables.length;
  const bodies = [node.predicate, node.transform].filter((body) => body !== undefined);
  const stepsPerElement = bodies.reduce((count, body) => count + nodeCount(body), 1);
  const predicate = node.predicate === undefined ? () => true : compileBoolean(node.predicate, loopVariables);
  const transform =
    node.transform === undefined
      ? ({ loopValues }: CelFrame): Json => loopValues[slot] ?? null
      : compileNode(node.transform, loopVariables);
  const bind =
    <T>(evaluate: (frame: CelFrame) => T) =>
    (frame: CelFrame, element: Json): T => {
      frame.steps.charge(stepsPerElement);
      frame.loopValues[slot] = element;
      return evaluate(frame);
    };
  const run = compileBody(node.macro, bind(predicate), bind(transform));
  return (frame) => {
    const elements = elementsOf(list(frame), node.list);
    const value = run(frame, elements);
    frame.loopValues.length = slot;
    return value;
  };
}

function compileBody(
  macro: CelComprehension['macro'],
  test: (frame: CelFrame, element: Json) => boolean,
  transform: (frame: CelFrame, element: Json) => Json,
): CompiledBody {
  switch (macro) {
    case 'all':
      return quantifier(test, false);
    case 'exists':
      return quantifier(test, true);
    case 'exists_one':
      return (frame, elements) => elements.filter((element) => test(frame, element)).length === 1;
    default:
      return (frame, elements) =>
        elements.filter((element) => test(frame, element)).map((element) => transform(frame, element));
  }
}

/** Compiles `all` and `exists`: one element with the deciding value decides, even if the test of another fails. */
function quantifier(test: (frame: CelFrame, element: Json) => boolean, deciding: boolean): CompiledBody {
  return (frame, elements) => {
    let failure: CelFailure | undefined;
    for (const element of elements) {
      const result = attempt(frame, () => test(frame, element));
      if (result === deciding) return deciding;
      if (result instanceof CelFailure) failure ??= result;
    }
    if (failure !== undefined) throw failure;
    return !deciding;
  };
}
