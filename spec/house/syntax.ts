// Reads source through the TypeScript parser, so that no rule mistakes a string, template or comment for code.

import ts from 'typescript';
import type { SourceText } from './tree.js';

/** Parses a file. */
export function parse({ file, text }: SourceText): ts.SourceFile {
  return ts.createSourceFile(file, text, ts.ScriptTarget.ES2023, true);
}

/** Yields the node and its descendants, in source order. */
export function* nodes(node: ts.Node): Generator<ts.Node> {
  yield node;
  const children: ts.Node[] = [];
  ts.forEachChild(node, (child) => {
    children.push(child);
  });
  for (const child of children) yield* nodes(child);
}

/** Yields the tokens below a node. Between two tokens there are only white space and comments. */
export function* tokens(node: ts.Node, source: ts.SourceFile): Generator<ts.Node> {
  if (node.kind >= ts.SyntaxKind.FirstJSDocNode && node.kind <= ts.SyntaxKind.LastJSDocNode) return;
  const children = node.getChildren(source);
  if (children.length === 0) yield node;
  for (const child of children) yield* tokens(child, source);
}

/** Returns the comments of a file, each run of adjacent ones as one text. */
export function comments(source: ts.SourceFile): string[] {
  const texts: string[] = [];
  for (const token of tokens(source, source)) {
    const between = source.text.slice(token.getFullStart(), token.getStart(source)).replace(/^#!.*/, '').trim();
    if (between !== '') texts.push(between);
  }
  return texts;
}

/** Returns the one-based line of a position. */
export function lineOf(source: ts.SourceFile, position: number): number {
  return source.getLineAndCharacterOfPosition(position).line + 1;
}
