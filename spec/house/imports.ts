// Which modules a file imports, however it spells it: import, export from, import(), require, getBuiltinModule.

import ts from 'typescript';
import { nodes, parse } from './syntax.js';
import type { SourceText } from './tree.js';

export interface Import {
  readonly specifier: string;
  /** Erased by the compiler: `import type`, `export type … from`, `import('x').T`. */
  readonly typeOnly: boolean;
}

export interface FileImports {
  readonly file: string;
  readonly imports: readonly Import[];
}

/** The specifier recorded for an import whose name is computed. */
export const COMPUTED = '(computed)';

export function importsOf(text: SourceText): FileImports {
  const imports: Import[] = [];
  for (const node of nodes(parse(text))) {
    const found = importAt(node);
    if (found) imports.push(found);
  }
  return { file: text.file, imports };
}

function importAt(node: ts.Node): Import | undefined {
  if (ts.isImportDeclaration(node)) {
    return named(node.moduleSpecifier, node.importClause?.phaseModifier === ts.SyntaxKind.TypeKeyword);
  }
  if (ts.isExportDeclaration(node) && node.moduleSpecifier) return named(node.moduleSpecifier, node.isTypeOnly);
  if (ts.isImportTypeNode(node)) return named(ts.isLiteralTypeNode(node.argument) ? node.argument.literal : node, true);
  if (ts.isExternalModuleReference(node)) return named(node.expression, false);
  if (ts.isCallExpression(node) && loadsModule(node.expression)) return named(node.arguments[0], false);
  return undefined;
}

function loadsModule(callee: ts.Expression): boolean {
  if (callee.kind === ts.SyntaxKind.ImportKeyword) return true;
  if (ts.isIdentifier(callee)) return callee.text === 'require';
  return ts.isPropertyAccessExpression(callee) && callee.name.text === 'getBuiltinModule';
}

function named(node: ts.Node | undefined, typeOnly: boolean): Import {
  return { specifier: node && ts.isStringLiteralLike(node) ? node.text : COMPUTED, typeOnly };
}
