// Finds the guards of the source by their markers: comments such as `// guard: result-recorded-once` above a statement
// or an element, or the same as a block comment directly before an expression.

import { readdirSync, readFileSync } from 'node:fs';
import { join, relative } from 'node:path';
import { fileURLToPath } from 'node:url';
import ts from 'typescript';
import { lineOf, nodes, tokens } from '../house/syntax.js';

export const sourceFolder = fileURLToPath(new URL('../../src', import.meta.url));

const MENTION = /\bguard:/;
const MARKER = /^(?:\/\/ guard: ([a-z0-9]+(?:-[a-z0-9]+)*)|\/\* guard: ([a-z0-9]+(?:-[a-z0-9]+)*) \*\/)$/;
const MARKERS = /\/\/ guard: .*|\/\* guard: .* \*\//g;

interface Marker {
  readonly slug: string;
  /** The first token after the marker. */
  readonly token: ts.Node;
}

/** Returns the markers of one file. Throws if a comment contains `guard:` and is not a marker, to detect typos. */
export function markersIn(source: ts.SourceFile): Marker[] {
  if (!MENTION.test(source.text)) return [];
  const markers: Marker[] = [];
  for (const token of tokens(source, source)) {
    const start = token.getFullStart();
    // TypeScript lists comments on the line of the previous token separately.
    const ranges = [
      ...(start === 0 ? [] : (ts.getTrailingCommentRanges(source.text, start) ?? [])),
      ...(ts.getLeadingCommentRanges(source.text, start) ?? []),
    ];
    for (const { pos, end, kind } of ranges.filter((range) => range.end <= token.getStart(source))) {
      const comment = source.text.slice(pos, end);
      if (!MENTION.test(comment)) continue;
      const [, ofLine, ofBlock] = MARKER.exec(comment) ?? [];
      const slug = ofLine ?? ofBlock;
      const location = `${source.fileName}:${lineOf(source, pos)}`;
      if (slug === undefined) throw new Error(`${location} contains "guard:", but is not a marker: ${comment}`);
      const between = source.text.slice(end, token.getStart(source));
      const isLine = kind === ts.SyntaxKind.SingleLineCommentTrivia;
      const isDirectlyBefore = isLine ? isOnOwnLine(source.text, pos) : !between.includes('\n');
      if (!isDirectlyBefore || between.replaceAll(MARKERS, '').trim() !== '')
        throw new Error(`${location} marks nothing: a marker must be directly before what it marks.`);
      markers.push({ slug, token });
    }
  }
  return markers;
}

function isOnOwnLine(text: string, position: number): boolean {
  return text.slice(text.lastIndexOf('\n', position - 1) + 1, position).trim() === '';
}

/** The largest node that starts after a marker; for a marker before `else`, the statement of that branch. */
export function markedNode(source: ts.SourceFile, slug: string): ts.Node {
  const [marker, ...others] = markersIn(source).filter((each) => each.slug === slug);
  if (marker === undefined || others.length > 0)
    throw new Error(`${source.fileName} has ${others.length + (marker ? 1 : 0)} markers of "${slug}"; it needs one.`);
  const { token } = marker;
  if (token.kind === ts.SyntaxKind.ElseKeyword && ts.isIfStatement(token.parent) && token.parent.elseStatement)
    return token.parent.elseStatement;
  const start = token.getStart(source);
  const isMarked = (node: ts.Node): boolean => node.getStart(source) === start && node.end > start;
  for (const node of nodes(source))
    if (!ts.isSourceFile(node) && !ts.isTemplateSpan(node) && isMarked(node)) return node;
  throw new Error(`${source.fileName}: nothing follows the marker of "${slug}".`);
}

interface GuardedFile {
  /** Relative to `src`. */
  readonly file: string;
  readonly text: string;
}

/** Every script of the library, without its tests. */
export function librarySources(): GuardedFile[] {
  return readdirSync(sourceFolder, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile() && entry.name.endsWith('.ts') && !entry.name.endsWith('.test.ts'))
    .map((entry) => join(entry.parentPath, entry.name))
    .map((path) => ({ file: relative(sourceFolder, path), text: readFileSync(path, 'utf8') }));
}

let index: ReadonlyMap<string, readonly GuardedFile[]> | undefined;

/** Maps each slug to the files with its markers, one element per marker. Searches the text, since parsing is slower. */
function filesBySlug(): ReadonlyMap<string, readonly GuardedFile[]> {
  if (index !== undefined) return index;
  const files = new Map<string, GuardedFile[]>();
  for (const guarded of librarySources())
    for (const [, slug = ''] of guarded.text.matchAll(/\bguard: ([a-z0-9-]+)/g))
      files.set(slug, [...(files.get(slug) ?? []), guarded]);
  index = files;
  return files;
}

/** The one file with the marker of a guard. */
export function fileOf(slug: string): GuardedFile {
  const files = filesBySlug().get(slug) ?? [];
  const [file] = files;
  if (file === undefined || files.length > 1)
    throw new Error(`The marker "guard: ${slug}" must be in src once; it is there ${files.length} times.`);
  return file;
}
