// Reading source through the TypeScript parser, so that no rule is fooled by strings, templates or comments.

import ts from 'typescript';
import type { SourceText } from './tree.js';

export function parse({ file, text }: SourceText): ts.SourceFile {
  return ts.createSourceFile(file, text, ts.ScriptTarget.ES2023, true);
}

/** The node and all below it, in source order. */
export function* nodes(node: ts.Node): Generator<ts.Node> {
  yield node;
  const children: ts.Node[] = [];
  ts.forEachChild(node, (child) => {
    children.push(child);
  });
  for (const child of children) yield* nodes(child);
}

/** The smallest pieces of syntax; what lies between two of them is space and comments. */
export function* tokens(node: ts.Node, source: ts.SourceFile): Generator<ts.Node> {
  if (node.kind >= ts.SyntaxKind.FirstJSDocNode && node.kind <= ts.SyntaxKind.LastJSDocNode) return;
  const children = node.getChildren(source);
  if (children.length === 0) yield node;
  for (const child of children) yield* tokens(child, source);
}

export function comments(source: ts.SourceFile): string[] {
  const found: string[] = [];
  for (const token of tokens(source, source)) {
    const between = source.text.slice(token.getFullStart(), token.getStart(source)).replace(/^#!.*/, '').trim();
    if (between !== '') found.push(between);
  }
  return found;
}

export function lineOf(source: ts.SourceFile, position: number): number {
  return source.getLineAndCharacterOfPosition(position).line + 1;
}
