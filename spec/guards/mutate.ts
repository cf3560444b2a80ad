// Breaks one marked guard by an operation on the syntax tree. The tables of guards name no file and almost no
// identifier of the source, so that renaming, moving and reformatting the source does not invalidate a broken twin.

import ts from 'typescript';
import { nodes, parse } from '../house/syntax.js';
import { markedNode } from './markers.js';

/** How a marked guard is broken. */
export type Operation =
  /** Removes the marked statement, element, argument, property or operand. */
  | 'drop'
  /** The condition of the marked `if`, `while` or conditional, or the marked expression, becomes `false`. */
  | 'never'
  /** The same with `true`. */
  | 'always'
  /** Replaces the marked expression; of a statement or property, its condition, initializer, right side or result. */
  | { readonly value: string }
  /** Replaces such an expression by one of its parts: an operand, argument, branch or the object of a method call. */
  | { readonly take: number | 'receiver' }
  /** Replaces text in a literal of the marked syntax. */
  | { readonly literal: readonly [before: string, after: string] }
  /** Replaces text of the marked syntax, on one line and without comments; for the few twins that need other code. */
  | { readonly rewrite: readonly [before: RegExp, after: string] };

interface Edit {
  readonly start: number;
  readonly end: number;
  readonly text: string;
}

/** Returns the text of a file with one guard broken. */
export function mutate(file: string, text: string, slug: string, operation: Operation): string {
  const source = parse({ file, text });
  try {
    const { start, end, text: replacement } = editOf(markedNode(source, slug), source, operation);
    const mutated = text.slice(0, start) + replacement + text.slice(end);
    assertTwin(source, parse({ file, text: mutated }));
    return mutated;
  } catch (error) {
    throw new Error(`${file}: guard "${slug}" cannot be broken: ${error instanceof Error ? error.message : error}`);
  }
}

function editOf(node: ts.Node, source: ts.SourceFile, operation: Operation): Edit {
  if (operation === 'drop') return dropNode(node, source);
  if (operation === 'never' || operation === 'always')
    return replaceNode(conditionOf(node), source, String(operation === 'always'));
  if ('value' in operation) return replaceNode(assignedOf(node) ?? subjectOf(node), source, operation.value);
  if ('take' in operation) return replaceByPart(node, source, operation.take);
  if ('literal' in operation) return replaceLiteral(node, source, operation.literal);
  const [before, after] = operation.rewrite;
  const code = onOneLine(node, source);
  if (!before.test(code)) throw new Error(`${before} does not match ${code}`);
  return replaceNode(node, source, code.replace(before, after));
}

/** The code of a node in one form, however it is formatted: without comments and line breaks. */
function onOneLine(node: ts.Node, source: ts.SourceFile): string {
  const code = ts.createPrinter({ removeComments: true }).printNode(ts.EmitHint.Unspecified, node, source);
  return code
    .replaceAll(/\s+/g, ' ')
    .replaceAll(/([([]) /g, '$1')
    .replaceAll(/,? ([)\]])/g, '$1');
}

function replaceNode(node: ts.Node, source: ts.SourceFile, text: string): Edit {
  return { start: node.getStart(source), end: node.end, text };
}

function dropNode(node: ts.Node, source: ts.SourceFile): Edit {
  if (ts.isDeclarationStatement(node) || ts.isVariableStatement(node))
    throw new Error('a twin without a declaration fails for the wrong reason: its name is undefined');
  if (ts.isStatement(node)) return replaceNode(node, source, ';');
  const { parent } = node;
  if (ts.isBinaryExpression(parent) && parent.right === node && isLogical(parent))
    return { start: parent.left.end, end: node.end, text: '' };
  const list = listWith(parent, node);
  if (list === undefined) throw new Error('the marked node is not a statement, element, argument, property or operand');
  const index = list.indexOf(node);
  const next = list[index + 1];
  if (next !== undefined) return { start: node.getStart(source), end: next.getStart(source), text: '' };
  return { start: list[index - 1]?.end ?? node.getStart(source), end: list.end, text: '' };
}

function listWith(parent: ts.Node, node: ts.Node): ts.NodeArray<ts.Node> | undefined {
  const list: ts.NodeArray<ts.Node> | undefined = ts.isArrayLiteralExpression(parent)
    ? parent.elements
    : ts.isObjectLiteralExpression(parent)
      ? parent.properties
      : ts.isCallExpression(parent) || ts.isNewExpression(parent)
        ? parent.arguments
        : undefined;
  return list?.includes(node) ? list : undefined;
}

function isLogical({ operatorToken: { kind } }: ts.BinaryExpression): boolean {
  const { AmpersandAmpersandToken, BarBarToken, QuestionQuestionToken } = ts.SyntaxKind;
  return kind === AmpersandAmpersandToken || kind === BarBarToken || kind === QuestionQuestionToken;
}

function conditionOf(node: ts.Node): ts.Node {
  const subject = subjectOf(node);
  return ts.isConditionalExpression(subject) ? subject.condition : subject;
}

/** The right side of a marked assignment. */
function assignedOf(node: ts.Node): ts.Node | undefined {
  const expression = ts.isExpressionStatement(node) ? node.expression : node;
  if (!ts.isBinaryExpression(expression)) return undefined;
  const { kind } = expression.operatorToken;
  const isAssignment = kind >= ts.SyntaxKind.FirstAssignment && kind <= ts.SyntaxKind.LastAssignment;
  return isAssignment ? expression.right : undefined;
}

/** The expression that a marked statement or property is about. */
function subjectOf(node: ts.Node): ts.Node {
  const subject =
    ts.isIfStatement(node) || ts.isWhileStatement(node) || ts.isReturnStatement(node) || ts.isExpressionStatement(node)
      ? node.expression
      : ts.isVariableStatement(node)
        ? node.declarationList.declarations[0]?.initializer
        : ts.isPropertyAssignment(node)
          ? node.initializer
          : ts.isExpression(node)
            ? node
            : undefined;
  if (subject === undefined) throw new Error(`a ${ts.SyntaxKind[node.kind]} has no expression to replace`);
  return subject;
}

function replaceByPart(node: ts.Node, source: ts.SourceFile, which: number | 'receiver'): Edit {
  if (ts.isTryStatement(node) && which === 0) return replaceNode(node, source, node.tryBlock.getText(source));
  const subject = subjectOf(node);
  const part = which === 'receiver' ? receiverOf(plainOf(subject)) : partsOf(plainOf(subject))[which];
  if (part === undefined) throw new Error(`it has no part ${which}`);
  const text = part.getText(source);
  const isPlain = ts.isIdentifier(part) || ts.isCallExpression(part) || ts.isPropertyAccessExpression(part);
  return replaceNode(subject, source, isPlain || ts.isStatement(node) ? text : `(${text})`);
}

function plainOf(node: ts.Node): ts.Node {
  return ts.isAsExpression(node) || ts.isParenthesizedExpression(node) ? plainOf(node.expression) : node;
}

function receiverOf(node: ts.Node): ts.Node | undefined {
  if (!ts.isCallExpression(node) || !ts.isPropertyAccessExpression(node.expression)) return undefined;
  return node.expression.expression;
}

function partsOf(node: ts.Node): readonly ts.Node[] {
  if (ts.isConditionalExpression(node)) return [node.whenTrue, node.whenFalse];
  if (ts.isBinaryExpression(node)) return [node.left, node.right];
  if (ts.isPrefixUnaryExpression(node)) return [node.operand];
  if (ts.isCallExpression(node)) return node.arguments;
  if (ts.isTemplateExpression(node)) return node.templateSpans.map(({ expression }) => expression);
  if (ts.isObjectLiteralExpression(node))
    return node.properties.filter(ts.isSpreadAssignment).map((each) => each.expression);
  return [];
}

function replaceLiteral(node: ts.Node, source: ts.SourceFile, [before, after]: readonly [string, string]): Edit {
  const matches = [...nodes(node)]
    .filter(
      (each) => ts.isLiteralExpression(each) || ts.isTemplateHead(each) || ts.isTemplateMiddleOrTemplateTail(each),
    )
    .flatMap((each) =>
      [...each.getText(source).matchAll(patternOf(before))].map(({ index }) => ({ literal: each, offset: index })),
    );
  const [match, ...others] = matches;
  if (match === undefined || others.length > 0)
    throw new Error(`its literals have ${JSON.stringify(before)} ${matches.length} times; it must be once`);
  const start = match.literal.getStart(source) + match.offset;
  return { start, end: start + before.length, text: after };
}

function patternOf(text: string): RegExp {
  return new RegExp(text.replaceAll(/[\\^$.*+?()[\]{}|]/g, '\\$&'), 'g');
}

const platform = new Set(
  [globalThis, Array.prototype, String.prototype, Math, JSON, Number].flatMap((each) =>
    Object.getOwnPropertyNames(each),
  ),
);

/** A twin with a syntax error or an undefined name would fail its check for the wrong reason. */
function assertTwin(source: ts.SourceFile, twin: ts.SourceFile): void {
  if (codeOf(twin) === codeOf(source)) throw new Error('the operation changes nothing');
  const { diagnostics = [] } = ts.transpileModule(twin.text, { reportDiagnostics: true });
  const [diagnostic] = diagnostics;
  if (diagnostic !== undefined) throw new Error(ts.flattenDiagnosticMessageText(diagnostic.messageText, '\n'));
  const sourceNames = namesIn(source);
  const unknown = [...namesIn(twin)].filter((name) => !sourceNames.has(name) && !platform.has(name.replace('.', '')));
  if (unknown.length > 0) throw new Error(`the file does not use the name ${unknown.join(', ')}`);
}

/** The names in a file; those of properties that are read begin with a dot. */
function namesIn(source: ts.SourceFile): Set<string> {
  const isProperty = (name: ts.Identifier): boolean =>
    ts.isPropertyAccessExpression(name.parent) && name.parent.name === name;
  const names = [...nodes(source)].filter(ts.isIdentifier);
  return new Set(names.map((name) => (isProperty(name) ? `.${name.text}` : name.text)));
}

/** The code without its comments. */
function codeOf(source: ts.SourceFile): string {
  return ts.createPrinter({ removeComments: true }).printFile(source);
}
