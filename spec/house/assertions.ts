// The rules for tests: a test can fail, it is never skipped without a reason, and it asserts instead of printing.

import ts from 'typescript';
import { lineOf, nodes, parse } from './syntax.js';
import type { SourceText } from './tree.js';

const assertion = /\b(?:expect|strictEqual|deepStrictEqual)\b/;
const skipping = /^(?:skip|skipIf|runIf|only|todo|fails)$/;

/** Returns the names of the file's functions that assert something. A test may delegate to them. */
function assertingFunctions(source: ts.SourceFile): ReadonlySet<string> {
  const declared = source.statements.filter(ts.isFunctionDeclaration);
  return new Set(declared.filter((node) => assertion.test(node.getText(source))).map((node) => node.name?.text ?? ''));
}

function canFail(body: ts.Node, asserting: ReadonlySet<string>, source: ts.SourceFile): boolean {
  if (assertion.test(body.getText(source))) return true;
  return [...nodes(body)].some((node) => ts.isIdentifier(node) && asserting.has(node.text));
}

/** True for `context.skip(!found, 'needs …')`, which skips a test only where something is missing and reports what. */
function isJustifiedSkip({ expression, arguments: [condition, reason] }: ts.CallExpression): boolean {
  return (
    /^context\.skip$/.test(expression.getText()) &&
    condition !== undefined &&
    ts.isPrefixUnaryExpression(condition) &&
    reason !== undefined &&
    ts.isStringLiteral(reason) &&
    reason.text.startsWith('needs ')
  );
}

/** Returns the tests of a file that cannot fail, may not run, or print. */
export function assertionFaults(text: SourceText): string[] {
  const source = parse(text);
  const asserting = assertingFunctions(source);
  const faults: string[] = [];
  const report = (node: ts.Node, problem: string): void =>
    void faults.push(`${text.file}:${lineOf(source, node.getStart(source))} ${problem}`);
  for (const node of nodes(source)) {
    if (!ts.isCallExpression(node)) continue;
    const callee = node.expression;
    if (ts.isPropertyAccessExpression(callee)) {
      if (skipping.test(callee.name.text) && !isJustifiedSkip(node)) report(node, 'is a test that may not run');
      if (callee.expression.getText(source) === 'console') report(node, 'prints; assert it instead');
    }
    if (!ts.isIdentifier(callee) || !/^(?:verifies|test|it)$/.test(callee.text)) continue;
    const body = node.arguments.find((argument) => ts.isArrowFunction(argument) || ts.isFunctionExpression(argument));
    if (body !== undefined && !canFail(body, asserting, source)) report(node, 'is a test that cannot fail');
  }
  return faults;
}
