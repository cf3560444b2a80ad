// Finds the modules that a file imports in any spelling: import, export from, import(), require, getBuiltinModule.

import ts from 'typescript';
import { nodes, parse } from './syntax.js';
import type { SourceText } from './tree.js';

/** One import of a file. */
export interface Import {
  readonly specifier: string;
  /** True if the compiler erases it: `import type`, `export type … from`, `import('x').T`. */
  readonly typeOnly: boolean;
}

/** A file and its imports, in source order. */
export interface FileImports {
  readonly file: string;
  readonly imports: readonly Import[];
}

/** The specifier recorded for an import whose name is computed. */
export const COMPUTED = '(computed)';

/** Returns the imports of a file. */
export function importsOf(text: SourceText): FileImports {
  const imports: Import[] = [];
  for (const node of nodes(parse(text))) {
    const item = importAt(node);
    if (item) imports.push(item);
  }
  return { file: text.file, imports };
}

function importAt(node: ts.Node): Import | undefined {
  if (ts.isImportDeclaration(node)) {
    return importOf(node.moduleSpecifier, node.importClause?.phaseModifier === ts.SyntaxKind.TypeKeyword);
  }
  if (ts.isExportDeclaration(node) && node.moduleSpecifier) return importOf(node.moduleSpecifier, node.isTypeOnly);
  if (ts.isImportTypeNode(node))
    return importOf(ts.isLiteralTypeNode(node.argument) ? node.argument.literal : node, true);
  if (ts.isExternalModuleReference(node)) return importOf(node.expression, false);
  if (ts.isCallExpression(node) && loadsModule(node.expression)) return importOf(node.arguments[0], false);
  return undefined;
}

function loadsModule(callee: ts.Expression): boolean {
  if (callee.kind === ts.SyntaxKind.ImportKeyword) return true;
  if (ts.isIdentifier(callee)) return callee.text === 'require';
  return ts.isPropertyAccessExpression(callee) && callee.name.text === 'getBuiltinModule';
}

function importOf(node: ts.Node | undefined, typeOnly: boolean): Import {
  return { specifier: node && ts.isStringLiteralLike(node) ? node.text : COMPUTED, typeOnly };
}
