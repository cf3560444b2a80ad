/**
 * Parses an expression into our own syntax tree, and refuses what is not supported: regular expressions, bytes, unsigned
 * integers, times, deeply nested comprehensions and everything that is not a function of `functions.ts`.
 */
import type { ASTNode } from '@marcbachmann/cel-js';
import { nearestWord } from '../../base/nearest-word.js';
import { celEnvironment } from './cel-js.js';
import { findFunction, functionNames } from './functions.js';
import { type CelComprehension, type CelMacro, type CelNode, CelSyntaxError } from './syntax.js';

/** The members of a literal without its text. */
interface LiteralMembers {
  readonly kind: 'literal';
  readonly value: string | number | boolean | null;
  readonly isInteger: boolean;
}

/** The maximum length of an expression. */
export const MAX_EXPRESSION_CHARS = 4_000;
const MAX_COMPREHENSION_DEPTH = 2;
const macros: ReadonlySet<string> = new Set<CelMacro>(['all', 'exists', 'exists_one', 'map', 'filter']);

/** What to write instead of a function that is not supported. */
const alternatives = new Map([
  ['matches', 'regular expressions are not supported; write contains(), startsWith() or endsWith()'],
  ['len', 'write size()'],
  ['length', 'write size()'],
  ['count', 'write size()'],
  ['includes', 'write contains() for a text, or "value in list"'],
  ['lower', 'write lowerAscii()'],
  ['upper', 'write upperAscii()'],
  ['any', 'write list.exists(x, …)'],
  ['some', 'write list.exists(x, …)'],
  ['every', 'write list.all(x, …)'],
]);

/** Parses an expression. Throws CelSyntaxError if it is invalid or not supported. */
export function parseCel(text: string): CelNode {
  if (text.length > MAX_EXPRESSION_CHARS)
    throw new CelSyntaxError(`it has ${text.length} characters; the limit is ${MAX_EXPRESSION_CHARS}`);
  return convert(parseText(text), 0);
}

function parseText(text: string): ASTNode {
  try {
    return celEnvironment().parse(text).ast;
  } catch (error) {
    const { summary, range, code } = error as { summary?: string; range?: { start: number }; code?: string };
    if (typeof summary !== 'string') throw new CelSyntaxError('it is nested too deeply');
    if (code === 'limit_exceeded') throw new CelSyntaxError('it is too large or nested too deeply');
    throw new CelSyntaxError(`${describeSyntaxError(text, summary, range?.start ?? 0)}${syntaxHint(text)}`);
  }
}

function describeSyntaxError(text: string, summary: string, offset: number): string {
  if (/EOF/.test(summary)) return 'the expression is incomplete';
  const found = /^(?:Unexpected|Expected)/.test(summary) ? /^(?:\w+|.)/su.exec(text.slice(offset))?.[0] : undefined;
  const problem = found === undefined ? `${summary[0]?.toLowerCase()}${summary.slice(1)}` : `unexpected "${found}"`;
  return `${problem} (column ${offset + 1})`;
}

/** Returns a hint for the operators of other languages. */
function syntaxHint(text: string): string {
  const code = text.replace(/"(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*'/g, '""');
  if (/\b(?:and|or|not)\b/.test(code)) return '; write && for "and", || for "or" and ! for "not"';
  if (/[=!]==/.test(code)) return '; write == or !=';
  return /[^=!<>]=(?!=)/.test(code) ? '; write == to compare' : '';
}

function convert(node: ASTNode, depth: number): CelNode {
  const text = node.input.slice(node.start, node.end);
  const child = (one: ASTNode): CelNode => convert(one, depth);
  switch (node.op) {
    case 'value':
      return { text, ...literalOf(node.args) };
    case 'id':
      return { text, kind: 'name', name: node.args };
    case '.':
      return { text, kind: 'member', target: child(node.args[0]), name: node.args[1] };
    case '[]':
      return { text, kind: 'index', target: child(node.args[0]), index: child(node.args[1]) };
    case 'list':
      return { text, kind: 'list', items: node.args.map(child) };
    case 'map':
      return { text, kind: 'map', entries: node.args.map(([key, value]) => [child(key), child(value)] as const) };
    case '!_':
      return { text, kind: 'not', operand: child(node.args) };
    case '-_':
      return { text, kind: 'negate', operand: child(node.args) };
    case '&&':
    case '||':
      return { text, kind: node.op === '&&' ? 'and' : 'or', left: child(node.args[0]), right: child(node.args[1]) };
    case '?:': {
      const [condition, whenTrue, whenFalse] = node.args;
      return {
        text,
        kind: 'conditional',
        condition: child(condition),
        whenTrue: child(whenTrue),
        whenFalse: child(whenFalse),
      };
    }
    case 'call':
      return convertCall(text, node.args[0], undefined, node.args[1], depth);
    case 'rcall':
      return convertCall(text, node.args[0], node.args[1], node.args[2], depth);
    case '.?':
    case '[?]':
      throw new CelSyntaxError(`optional access is not supported: ${text}; write has()`);
    default:
      return { text, kind: 'binary', operator: node.op, left: child(node.args[0]), right: child(node.args[1]) };
  }
}

function literalOf(value: unknown): LiteralMembers {
  if (typeof value === 'bigint') {
    if (!Number.isSafeInteger(Number(value))) throw new CelSyntaxError(`the number ${value} is too large`);
    return { kind: 'literal', value: Number(value), isInteger: true };
  }
  if (value === null || typeof value === 'string' || typeof value === 'number' || typeof value === 'boolean')
    return { kind: 'literal', value, isInteger: false };
  throw new CelSyntaxError('literals of bytes and unsigned integers are not supported');
}

function convertCall(
  text: string,
  name: string,
  receiver: ASTNode | undefined,
  argNodes: readonly ASTNode[],
  depth: number,
): CelNode {
  if (receiver === undefined && name === 'has') return convertHas(text, argNodes, depth);
  if (receiver !== undefined && macros.has(name))
    return { text, ...convertMacro(text, name as CelMacro, receiver, argNodes, depth) };
  const args = (receiver === undefined ? argNodes : [receiver, ...argNodes]).map((one) => convert(one, depth));
  const called = findFunction(name, receiver !== undefined, args.length);
  if (called !== undefined) return { text, kind: 'call', called, args };
  throw new CelSyntaxError(unknownFunction(name, receiver !== undefined, argNodes.length));
}

function unknownFunction(name: string, isMethod: boolean, argCount: number): string {
  const alternative = alternatives.get(name);
  if (alternative !== undefined) return `${name}() is not supported; ${alternative}`;
  if (functionNames.includes(name) || macros.has(name) || name === 'has') {
    const form = isMethod ? `a method with ${argCount} arguments` : `a function of ${argCount} arguments`;
    return `${name}() cannot be called as ${form}`;
  }
  const known = ['has', ...functionNames, ...macros];
  const nearest = nearestWord(name, known);
  return `${name}() is not supported; ${nearest === undefined ? `known: ${known.join(', ')}` : `did you mean ${nearest}()?`}`;
}

function convertHas(text: string, [argument, ...others]: readonly ASTNode[], depth: number): CelNode {
  if (argument?.op !== '.' || others.length > 0)
    throw new CelSyntaxError(`has() needs one member, as in has(input.name): ${text}`);
  return { text, kind: 'has', target: convert(argument.args[0], depth), name: argument.args[1] };
}

function convertMacro(
  text: string,
  macro: CelMacro,
  receiver: ASTNode,
  [variable, first, second, ...others]: readonly ASTNode[],
  depth: number,
): CelComprehension {
  if (depth >= MAX_COMPREHENSION_DEPTH)
    throw new CelSyntaxError(`more than ${MAX_COMPREHENSION_DEPTH} nested list operations: ${text}`);
  const isValid = variable?.op === 'id' && first !== undefined && others.length === 0;
  if (!isValid || (second !== undefined && macro !== 'map'))
    throw new CelSyntaxError(`${macro}() needs a name and an expression, as in list.${macro}(x, …): ${text}`);
  const body = (node: ASTNode | undefined) => (node === undefined ? undefined : convert(node, depth + 1));
  const [predicate, transform] = macro === 'map' && second === undefined ? [undefined, first] : [first, second];
  return {
    kind: 'comprehension',
    macro,
    list: convert(receiver, depth),
    variable: variable.args as string,
    predicate: body(predicate),
    transform: body(transform),
  };
}
