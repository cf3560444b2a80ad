// What must not be in the source, and how the manifest names versions.

import ts from 'typescript';
import { importsOf } from './imports.js';
import { comments, lineOf, nodes, parse } from './syntax.js';
import type { SourceText } from './tree.js';

const postponed = /\b(?:TODO|FIXME)\b/;
const switchedOff = /@ts-(?:ignore|nocheck)|(?:biome|eslint|prettier)-(?:ignore|disable)/;
const exact = /^(?:npm:(?:@[\w.-]+\/)?[\w.-]+@)?\d+\.\d+\.\d+(?:-[\w.-]+)?$/;

export function hygieneFaults(text: SourceText): string[] {
  const source = parse(text);
  const notes = comments(source);
  const faults = [
    ...notes.filter((note) => postponed.test(note)).map((note) => `${text.file} postpones work: ${note}`),
    ...notes.filter((note) => switchedOff.test(note)).map((note) => `${text.file} switches a check off: ${note}`),
  ];
  for (const node of nodes(source)) {
    if (node.kind === ts.SyntaxKind.AnyKeyword)
      faults.push(`${place(source, node)} says any; say unknown and narrow it`);
  }
  return faults;
}

/** Ways to run text as code. */
export function evaluationFaults(text: SourceText): string[] {
  const source = parse(text);
  const faults: string[] = [];
  for (const node of nodes(source)) {
    if (!ts.isCallExpression(node) && !ts.isNewExpression(node)) continue;
    const name = calleeName(node.expression);
    if (name === 'eval' || name === 'Function') faults.push(`${place(source, node)} runs text as code (${name})`);
  }
  const loads = importsOf(text).imports.some(({ specifier }) => /^(?:node:)?vm$/.test(specifier));
  return loads ? [...faults, `${text.file} imports node:vm, which is no sandbox`] : faults;
}

function calleeName(callee: ts.Expression): string | undefined {
  if (ts.isIdentifier(callee)) return callee.text;
  const global = ts.isPropertyAccessExpression(callee) && callee.expression.getText() === 'globalThis';
  return global ? callee.name.text : undefined;
}

export function starExports(text: SourceText): string[] {
  const source = parse(text);
  return source.statements
    .filter(ts.isExportDeclaration)
    .filter(({ exportClause }) => exportClause === undefined || ts.isNamespaceExport(exportClause))
    .map((node) => `${place(source, node)} exports by star; list the names`);
}

export interface Manifest {
  readonly dependencies?: Readonly<Record<string, string>>;
  readonly optionalDependencies?: Readonly<Record<string, string>>;
  readonly devDependencies?: Readonly<Record<string, string>>;
  readonly overrides?: Readonly<Record<string, string>>;
}

export function manifestFaults(manifest: Manifest): string[] {
  const runtime = { ...manifest.dependencies, ...manifest.optionalDependencies };
  const faults = Object.entries({ ...manifest.overrides, ...manifest.devDependencies, ...runtime })
    .filter(([, version]) => !exact.test(version))
    .map(([name, version]) => `${name} is '${version}'; pin one exact version`);
  const count = Object.keys(runtime).length;
  return count > 12 ? [...faults, `${count} runtime dependencies; at most twelve are allowed`] : faults;
}

function place(source: ts.SourceFile, node: ts.Node): string {
  return `${source.fileName}:${lineOf(source, node.getStart(source))}`;
}
