/**
 * Checks an expression against the JSON Schemas of its variables, before it is evaluated. Where a schema does not state
 * one type, any value is assumed, so a valid expression is never refused.
 */
import { nearestWord } from '../../base/nearest-word.js';
import { isObject } from '../../base/own-property.js';
import type { JsonObject } from '../../protocol/json.js';
import type { JsonSchema } from '../../protocol/loop.js';
import { describeKind, kindOf, type ValueKind } from './functions.js';
import { type CelComprehension, type CelNode, memberPathOf } from './syntax.js';

/** The schemas of the variables. */
export type CelVariables = { readonly [name: string]: JsonSchema };

/** What is known of a value: its kind and, for lists and maps, its schema. */
interface StaticType {
  readonly kind: ValueKind;
  readonly schema?: JsonObject;
  /** The type of the elements of a list that has no schema. */
  readonly elements?: StaticType;
}

/** Thrown for an expression that cannot hold; caught in this file. */
class CheckFailure extends Error {}

const dyn: StaticType = { kind: 'dyn' };
const booleanType: StaticType = { kind: 'boolean' };
const numberType: StaticType = { kind: 'number' };
const MAX_LISTED_NAMES = 12;

const kindsByType: { readonly [type: string]: ValueKind } = {
  string: 'string',
  integer: 'number',
  number: 'number',
  boolean: 'boolean',
  null: 'null',
  array: 'list',
  object: 'map',
};
/** Keywords that combine schemas. A schema that uses one may allow more than its own keywords tell. */
const combining = ['$ref', '$dynamicRef', 'allOf', 'anyOf', 'oneOf', 'if', 'dependentSchemas'];

function typeOfSchema(schema: unknown): StaticType {
  if (!isObject(schema) || combining.some((keyword) => Object.hasOwn(schema, keyword))) return dyn;
  const { type } = schema;
  const kind = typeof type === 'string' && Object.hasOwn(kindsByType, type) ? kindsByType[type] : undefined;
  return kind === undefined ? dyn : { kind, schema: schema as JsonObject };
}

/**
 * Returns why an expression cannot be evaluated to true or false over variables with these schemas; undefined if it
 * can. Without schemas, every variable may have any value. `describeMissing` says what an undeclared member of a
 * variable is, such as `is not produced`.
 */
export function checkCel(
  root: CelNode,
  variables?: CelVariables,
  describeMissing: (variable: string) => string = () => 'is not declared',
): string | undefined {
  return reasonOf(() => {
    const { kind } = new CelChecker(variables, describeMissing).check(root, new Map());
    const isPossible = kind === 'boolean' || kind === 'dyn';
    return isPossible ? undefined : `its result is ${describeKind(kind)}, not true or false`;
  });
}

/**
 * Returns why a path of member names such as `['result', 'output', 'count']` cannot be read from variables with these
 * schemas; undefined if it can. Elements of lists are not checked.
 */
export function checkMemberPath(
  path: readonly string[],
  variables: CelVariables,
  describeMissing?: (variable: string) => string,
): string | undefined {
  const [variable = '', ...members] = path;
  const element = members.findIndex((name) => /^[0-9]+$/.test(name));
  let node: CelNode = { text: variable, kind: 'name', name: variable };
  for (const name of element === -1 ? members : members.slice(0, element))
    node = { text: `${node.text}.${name}`, kind: 'member', target: node, name };
  const checker = new CelChecker(variables, describeMissing ?? (() => 'is not declared'));
  return reasonOf(() => void checker.check(node, new Map()));
}

function reasonOf(check: () => string | undefined): string | undefined {
  try {
    return check();
  } catch (failure) {
    if (failure instanceof CheckFailure) return failure.message;
    throw failure;
  }
}

function suggest(name: string, known: readonly string[], label: string): string {
  const nearest = nearestWord(name, known);
  if (nearest !== undefined) return `; did you mean ${nearest}?`;
  const listed = known.slice(0, MAX_LISTED_NAMES).join(', ') + (known.length > MAX_LISTED_NAMES ? ', …' : '');
  return known.length === 0 ? '' : `; ${label}: ${listed}`;
}

type LoopVariables = ReadonlyMap<string, StaticType>;

class CelChecker {
  private readonly variables: CelVariables | undefined;
  private readonly describeMissing: (variable: string) => string;

  constructor(variables: CelVariables | undefined, describeMissing: (variable: string) => string) {
    this.variables = variables;
    this.describeMissing = describeMissing;
  }

  check(node: CelNode, loop: LoopVariables): StaticType {
    switch (node.kind) {
      case 'literal':
        return { kind: kindOf(node.value) };
      case 'name':
        return loop.get(node.name) ?? this.checkVariable(node.name);
      case 'member':
        return this.checkMember(node, node.name, this.check(node.target, loop), true);
      case 'has':
        this.checkMember(node, node.name, this.check(node.target, loop), false);
        return booleanType;
      case 'index':
        return this.checkIndex(node, loop);
      case 'list': {
        const [first, ...others] = node.items.map((item) => this.check(item, loop));
        const isUniform = others.every(({ kind }) => kind === first?.kind);
        return { kind: 'list', elements: isUniform && first !== undefined ? { kind: first.kind } : dyn };
      }
      case 'map':
        for (const [key, value] of node.entries) {
          this.require(key, ['string'], loop);
          this.check(value, loop);
        }
        return { kind: 'map' };
      case 'negate':
        return this.require(node.operand, ['number'], loop);
      case 'not':
        return this.require(node.operand, ['boolean'], loop);
      case 'and':
      case 'or':
        this.require(node.left, ['boolean'], loop);
        return this.require(node.right, ['boolean'], loop);
      case 'binary':
        return this.checkBinary(node, loop);
      case 'conditional': {
        this.require(node.condition, ['boolean'], loop);
        const [one, other] = [this.check(node.whenTrue, loop), this.check(node.whenFalse, loop)];
        return one.kind === other.kind ? { kind: one.kind } : dyn;
      }
      case 'call':
        for (const [index, argument] of node.args.entries())
          this.require(argument, node.called.params[index] ?? [], loop, `${node.called.name}()`);
        return { kind: node.called.result };
      case 'comprehension':
        return this.checkComprehension(node, loop);
    }
  }

  /** Checks a node whose value must have one of these kinds. Returns the type of such a value. */
  private require(node: CelNode, kinds: readonly ValueKind[], loop: LoopVariables, user?: string): StaticType {
    const type = this.check(node, loop);
    if (type.kind !== 'dyn' && !kinds.includes(type.kind)) {
      const expected = kinds.map(describeKind).join(' or ').replace('a boolean', 'true or false');
      const problem = user === undefined ? `not ${expected}` : `which ${user} cannot use`;
      throw new CheckFailure(`${node.text} is ${describeKind(type.kind)}, ${problem}`);
    }
    return type.kind === 'dyn' && kinds.length === 1 && kinds[0] !== undefined ? { kind: kinds[0] } : type;
  }

  private checkVariable(name: string): StaticType {
    if (this.variables === undefined) return dyn;
    if (Object.hasOwn(this.variables, name)) return typeOfSchema(this.variables[name]);
    const known = Object.keys(this.variables);
    throw new CheckFailure(`${name} is not readable here${suggest(name, known, 'readable')}`);
  }

  /** Returns the type of a member. With `isRead` false, a member that only might be absent is accepted. */
  private checkMember(node: CelNode, name: string, type: StaticType, isRead: boolean): StaticType {
    if (type.kind === 'dyn') return dyn;
    if (type.kind !== 'map') {
      const hint = type.kind === 'list' && name === 'length' ? '; write size()' : '';
      throw new CheckFailure(`${node.text}: ${describeKind(type.kind)} has no member ${name}${hint}`);
    }
    const { properties, additionalProperties, patternProperties } = type.schema ?? {};
    if (isObject(properties) && Object.hasOwn(properties, name)) return typeOfSchema(properties[name]);
    const isClosed = additionalProperties === false;
    const isKnown = isClosed || (isRead && isObject(properties) && additionalProperties === undefined);
    if (patternProperties !== undefined || !isKnown) return typeOfSchema(additionalProperties);
    const missing = this.describeMissing(memberPathOf(node)?.[0] ?? '');
    const known = isObject(properties) ? Object.keys(properties) : [];
    throw new CheckFailure(`${node.text} ${missing}${suggest(name, known, 'known')}`);
  }

  private checkIndex(node: Extract<CelNode, { kind: 'index' }>, loop: LoopVariables): StaticType {
    const target = this.require(node.target, ['list', 'map'], loop);
    if (target.kind === 'list') {
      this.require(node.index, ['number'], loop);
      return elementType(target);
    }
    const isName = node.index.kind === 'literal' && typeof node.index.value === 'string';
    if (isName) return this.checkMember(node, String(node.index.value), target, true);
    this.require(node.index, target.kind === 'map' ? ['string'] : ['string', 'number'], loop);
    return dyn;
  }

  private checkBinary(node: Extract<CelNode, { kind: 'binary' }>, loop: LoopVariables): StaticType {
    const { operator, left: leftNode, right: rightNode } = node;
    const [left, right] = [this.check(leftNode, loop), this.check(rightNode, loop)];
    const kinds = [left.kind, right.kind];
    const isKnown = !kinds.includes('dyn');
    if (operator === '==' || operator === '!=') {
      if (isKnown && left.kind !== right.kind && !kinds.includes('null'))
        throw new CheckFailure(`${node.text} compares ${describeKind(left.kind)} with ${describeKind(right.kind)}`);
      return booleanType;
    }
    if (operator === 'in') {
      const hint = right.kind === 'string' ? '; write contains()' : '';
      if (right.kind !== 'dyn' && right.kind !== 'list' && right.kind !== 'map')
        throw new CheckFailure(`${rightNode.text} is ${describeKind(right.kind)}, not a list or an object${hint}`);
      return booleanType;
    }
    const allowed = kindsByOperator(operator);
    const isAllowed = kinds.every((kind) => kind === 'dyn' || allowed.includes(kind));
    if (!isAllowed || (isKnown && left.kind !== right.kind)) {
      const operands = `${describeKind(left.kind)} and ${describeKind(right.kind)}`.replace('a dyn', 'any value');
      throw new CheckFailure(`${operator} cannot be applied to ${operands}: ${node.text}`);
    }
    if (/[<>]/.test(operator)) return booleanType;
    if (operator !== '+') return numberType;
    const known = left.kind === 'dyn' ? right : left;
    return { kind: known.kind };
  }

  private checkComprehension(node: CelComprehension, loop: LoopVariables): StaticType {
    const list = this.require(node.list, ['list', 'map'], loop);
    const element: StaticType = list.kind === 'map' ? { kind: 'string' } : elementType(list);
    const inner = new Map([...loop, [node.variable, element]]);
    if (node.predicate !== undefined) this.require(node.predicate, ['boolean'], inner);
    const transformed = node.transform === undefined ? element : this.check(node.transform, inner);
    return node.macro === 'map' || node.macro === 'filter' ? { kind: 'list', elements: transformed } : booleanType;
  }
}

function elementType({ kind, schema, elements }: StaticType): StaticType {
  if (kind !== 'list') return dyn;
  if (elements !== undefined) return elements;
  return schema === undefined || Object.hasOwn(schema, 'prefixItems') ? dyn : typeOfSchema(schema.items);
}

function kindsByOperator(operator: string): readonly ValueKind[] {
  if (operator === '+') return ['number', 'string', 'list'];
  return /[<>]/.test(operator) ? ['number', 'string'] : ['number'];
}
