// Finds the requirements that tests cite. Only a literal id counts, so that a text search finds every citation.

import ts from 'typescript';
import { nodes, parse } from './syntax.js';
import type { SourceText } from './tree.js';

/** `verifies` declares a test; `guard` declares a row of a guard table, and each row becomes a test. */
const CITING: ReadonlySet<string> = new Set(['verifies', 'guard']);

/** A requirement id and the test file that cites it. */
interface Citation {
  readonly file: string;
  readonly id: string;
}

/** Returns the citations of a file, in source order. */
export function citationsIn(text: SourceText): Citation[] {
  const citations: Citation[] = [];
  for (const node of nodes(parse(text))) {
    if (!ts.isCallExpression(node) || !ts.isIdentifier(node.expression) || !CITING.has(node.expression.text)) continue;
    const id = node.arguments[0];
    if (id && ts.isStringLiteralLike(id)) citations.push({ file: text.file, id: id.text });
  }
  return citations;
}

/** Returns the ids that no test cites, and the citations of unknown ids. */
export function citationFaults(ids: readonly string[], citations: readonly Citation[]): string[] {
  const cited = new Set(citations.map(({ id }) => id));
  const uncited = ids.filter((id) => !cited.has(id)).map((id) => `no test cites '${id}'`);
  const unknown = citations
    .filter(({ id }) => !ids.includes(id))
    .map(({ file, id }) => `${file} cites '${id}', which spec/requirements.ts does not have`);
  return [...uncited, ...unknown];
}
