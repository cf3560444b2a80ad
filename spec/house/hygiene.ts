// Checks of source and manifest that the linter lacks: postponed work, suppressed checks, the Function constructor, star
// exports of types, and exact versions.

import ts from 'typescript';
import { comments, lineOf, nodes, parse } from './syntax.js';
import type { SourceText } from './tree.js';

const MAX_RUNTIME_DEPENDENCIES = 12;

const postponedWork = /\b(?:TODO|FIXME)\b/;
const suppression = /@ts-(?:ignore|nocheck)|(?:biome|eslint|prettier)-(?:ignore|disable)/;
const exactVersion = /^(?:npm:(?:@[\w.-]+\/)?[\w.-]+@)?\d+\.\d+\.\d+(?:-[\w.-]+)?$/;

/** Returns the comments that postpone work or suppress a check. */
export function commentFaults(text: SourceText): string[] {
  // Parsing takes long, and almost no file contains these words anywhere.
  if (!postponedWork.test(text.text) && !suppression.test(text.text)) return [];
  const all = comments(parse(text));
  return [
    ...all.filter((one) => postponedWork.test(one)).map((one) => `${text.file} postpones work: ${one}`),
    ...all.filter((one) => suppression.test(one)).map((one) => `${text.file} suppresses a check: ${one}`),
  ];
}

/** Returns the calls of the Function constructor, including those through `globalThis`. */
export function evaluationFaults(text: SourceText): string[] {
  if (!text.text.includes('Function')) return [];
  const source = parse(text);
  const faults: string[] = [];
  for (const node of nodes(source)) {
    if (!ts.isCallExpression(node) && !ts.isNewExpression(node)) continue;
    if (calleeName(node.expression) === 'Function')
      faults.push(`${locationOf(source, node)} evaluates text as code (Function)`);
  }
  return faults;
}

function calleeName(callee: ts.Expression): string | undefined {
  if (ts.isIdentifier(callee)) return callee.text;
  const isGlobal = ts.isPropertyAccessExpression(callee) && callee.expression.getText() === 'globalThis';
  return isGlobal ? callee.name.text : undefined;
}

/** Returns the star exports of types. The linter rejects star exports of values only. */
export function typeStarExports(text: SourceText): string[] {
  const source = parse(text);
  return source.statements
    .filter(ts.isExportDeclaration)
    .filter(({ isTypeOnly }) => isTypeOnly)
    .filter(({ exportClause }) => exportClause === undefined || ts.isNamespaceExport(exportClause))
    .map((node) => `${locationOf(source, node)} exports types by star; list the names`);
}

/** The members of package.json that name versions. */
export interface Manifest {
  readonly dependencies?: Readonly<Record<string, string>>;
  readonly optionalDependencies?: Readonly<Record<string, string>>;
  readonly devDependencies?: Readonly<Record<string, string>>;
  /** An override applies to a package, or to what a package depends on. */
  readonly overrides?: Readonly<Record<string, string | Readonly<Record<string, string>>>>;
}

/** Returns the inexact versions of a manifest, and a fault if it has too many runtime dependencies. */
export function manifestFaults(manifest: Manifest): string[] {
  const runtime = { ...manifest.dependencies, ...manifest.optionalDependencies };
  const overrides = Object.entries(manifest.overrides ?? {}).flatMap(([name, override]) =>
    typeof override === 'string' ? [[name, override] as const] : Object.entries(override),
  );
  const faults = [...overrides, ...Object.entries({ ...manifest.devDependencies, ...runtime })]
    .filter(([, version]) => !exactVersion.test(version))
    .map(([name, version]) => `${name} is '${version}'; pin one exact version`);
  const count = Object.keys(runtime).length;
  if (count <= MAX_RUNTIME_DEPENDENCIES) return faults;
  return [...faults, `${count} runtime dependencies (limit ${MAX_RUNTIME_DEPENDENCIES})`];
}

function locationOf(source: ts.SourceFile, node: ts.Node): string {
  return `${source.fileName}:${lineOf(source, node.getStart(source))}`;
}
