// What a test must have to be one: it can fail, it runs wherever it can, and it does not talk instead.

import ts from 'typescript';
import { lineOf, nodes, parse } from './syntax.js';
import type { SourceText } from './tree.js';

const asserts = /\b(?:expect|strictEqual|deepStrictEqual)\b/;
const sidestep = /^(?:skip|skipIf|runIf|only|todo|fails)$/;

/** Functions of the file that assert something themselves, so that a test may leave it to them. */
function judges(source: ts.SourceFile): ReadonlySet<string> {
  const declared = source.statements.filter(ts.isFunctionDeclaration);
  return new Set(declared.filter((node) => asserts.test(node.getText(source))).map((node) => node.name?.text ?? ''));
}

function canFail(body: ts.Node, known: ReadonlySet<string>, source: ts.SourceFile): boolean {
  if (asserts.test(body.getText(source))) return true;
  return [...nodes(body)].some((node) => ts.isIdentifier(node) && known.has(node.text));
}

/** `context.skip(!found, 'needs …')`: passed over only where something is missing, and the report says what. */
function saysWhatItNeeds({ expression, arguments: [condition, reason] }: ts.CallExpression): boolean {
  return (
    /^context\.skip$/.test(expression.getText()) &&
    condition !== undefined &&
    ts.isPrefixUnaryExpression(condition) &&
    reason !== undefined &&
    ts.isStringLiteral(reason) &&
    reason.text.startsWith('needs ')
  );
}

export function assertionFaults(text: SourceText): string[] {
  const source = parse(text);
  const known = judges(source);
  const faults: string[] = [];
  const fault = (node: ts.Node, what: string): void =>
    void faults.push(`${text.file}:${lineOf(source, node.getStart(source))} ${what}`);
  for (const node of nodes(source)) {
    if (!ts.isCallExpression(node)) continue;
    const callee = node.expression;
    if (ts.isPropertyAccessExpression(callee)) {
      if (sidestep.test(callee.name.text) && !saysWhatItNeeds(node)) fault(node, 'is a test that may not run');
      if (callee.expression.getText(source) === 'console') fault(node, 'prints; assert it instead');
    }
    if (!ts.isIdentifier(callee) || !/^(?:verifies|test|it)$/.test(callee.text)) continue;
    const body = node.arguments.find((argument) => ts.isArrowFunction(argument) || ts.isFunctionExpression(argument));
    if (body !== undefined && !canFail(body, known, source)) fault(node, 'is a test that cannot fail');
  }
  return faults;
}
