// Limits that the linter cannot check: the size of the kernel, of a header and of an accessor, and vague file names.

import ts from 'typescript';
import { lineOf, nodes, parse, tokens } from './syntax.js';
import type { SourceText } from './tree.js';

/** Line limits. The kernel counts lines of code; headers and accessors count all their lines. */
export const limits = { header: 8, kernel: 1300, accessor: 100 } as const;

const vagueWords = new Set([
  'util',
  'utils',
  'helper',
  'helpers',
  'common',
  'manager',
  'managers',
  'misc',
  'type',
  'types',
]);

/** Returns the limits that a file breaks. */
export function sizeFaults(text: SourceText): string[] {
  const header = headerLines(text.text);
  const faults = [...nameFaults(text.file), ...accessorFaults(text)];
  if (header > limits.header) faults.push(`${text.file} opens with ${header} comment lines (limit ${limits.header})`);
  return faults;
}

function nameFaults(file: string): string[] {
  const words = file
    .replace(/\.[cm]?[jt]sx?$/, '')
    .toLowerCase()
    .split(/[/._-]/);
  return words
    .filter((word) => vagueWords.has(word))
    .map((word) => `${file}: '${word}' is vague; name the file after the noun it owns or the verb it exports`);
}

/** The linter's limit for functions leaves out getters and setters. */
function accessorFaults(text: SourceText): string[] {
  if (!/\b[gs]et\b/.test(text.text)) return [];
  const source = parse(text);
  return [...nodes(source)].filter(ts.isAccessor).flatMap((node) => {
    const first = lineOf(source, node.getStart(source));
    const length = lineOf(source, node.end) - first + 1;
    if (length <= limits.accessor) return [];
    return [`${source.fileName}:${first} is an accessor of ${length} lines (limit ${limits.accessor})`];
  });
}

function headerLines(text: string): number {
  const body = text.replace(/^#!.*\n/, '').trimStart();
  if (body.startsWith('/*')) return body.slice(0, body.indexOf('*/')).split('\n').length;
  const lines = body.split('\n');
  const end = lines.findIndex((line) => !line.startsWith('//'));
  return end === -1 ? lines.length : end;
}

/** Counts the lines that contain code: neither blank nor only a comment. */
export function codeLines(text: SourceText): number {
  const source = parse(text);
  const lines = new Set<number>();
  for (const token of tokens(source, source)) {
    if (token.kind === ts.SyntaxKind.EndOfFileToken || token.end === token.getStart(source)) continue;
    const last = lineOf(source, token.end);
    for (let line = lineOf(source, token.getStart(source)); line <= last; line++) lines.add(line);
  }
  return lines.size;
}
