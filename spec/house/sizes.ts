// How long things may grow and what files may be called.

import ts from 'typescript';
import { lineOf, nodes, parse, tokens } from './syntax.js';
import type { SourceText } from './tree.js';

export const limits = { file: 400, function: 60, header: 8, kernel: 1200 } as const;

const vague = new Set(['util', 'utils', 'helper', 'helpers', 'common', 'manager', 'managers', 'misc', 'type', 'types']);

export function sizeFaults(text: SourceText): string[] {
  const source = parse(text);
  const length = text.text.trimEnd().split('\n').length;
  const header = headerLines(text.text);
  const faults = [...nameFaults(text.file), ...functionFaults(source)];
  if (length > limits.file) faults.push(`${text.file} has ${length} lines; split it by concept (limit ${limits.file})`);
  if (header > limits.header) faults.push(`${text.file} opens with ${header} comment lines (limit ${limits.header})`);
  return faults;
}

function nameFaults(file: string): string[] {
  const words = file
    .replace(/\.[cm]?[jt]sx?$/, '')
    .toLowerCase()
    .split(/[/._-]/);
  const found = words.filter((word) => vague.has(word));
  return found.map(
    (word) => `${file}: '${word}' says nothing; name the file after the noun it owns or the verb it exports`,
  );
}

function functionFaults(source: ts.SourceFile): string[] {
  const faults: string[] = [];
  for (const node of nodes(source)) {
    if (!ts.isFunctionLike(node) || !('body' in node) || node.body === undefined) continue;
    const first = lineOf(source, node.getStart(source));
    const length = lineOf(source, node.end) - first + 1;
    if (length <= limits.function) continue;
    faults.push(`${source.fileName}:${first} is a function of ${length} lines (limit ${limits.function})`);
  }
  return faults;
}

function headerLines(text: string): number {
  const body = text.replace(/^#!.*\n/, '').trimStart();
  if (body.startsWith('/*')) return body.slice(0, body.indexOf('*/')).split('\n').length;
  const lines = body.split('\n');
  const end = lines.findIndex((line) => !line.startsWith('//'));
  return end === -1 ? lines.length : end;
}

/** Lines that hold code: not blank, not only a comment. */
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
