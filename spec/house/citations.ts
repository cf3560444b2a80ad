// Which requirements the tests cite. Only a literal id counts: a reader must be able to search for it.

import ts from 'typescript';
import { nodes, parse } from './syntax.js';
import type { SourceText } from './tree.js';

/** A test, and a row of the table of guards, whose rows become tests. */
const CITING: ReadonlySet<string> = new Set(['verifies', 'guard']);

export interface Citation {
  readonly file: string;
  readonly id: string;
}

export function citationsIn(text: SourceText): Citation[] {
  const found: Citation[] = [];
  for (const node of nodes(parse(text))) {
    if (!ts.isCallExpression(node) || !ts.isIdentifier(node.expression) || !CITING.has(node.expression.text)) continue;
    const id = node.arguments[0];
    if (id && ts.isStringLiteralLike(id)) found.push({ file: text.file, id: id.text });
  }
  return found;
}

export function citationFaults(ids: readonly string[], citations: readonly Citation[]): string[] {
  const cited = new Set(citations.map(({ id }) => id));
  const uncited = ids.filter((id) => !cited.has(id)).map((id) => `no test cites '${id}'`);
  const unknown = citations
    .filter(({ id }) => !ids.includes(id))
    .map(({ file, id }) => `${file} cites '${id}', which spec/requirements.ts does not have`);
  return [...uncited, ...unknown];
}
