// The protocol as a package: the exports of each entry point, and compile errors when a shape changes.

import ts from 'typescript';
import { expect } from 'vitest';
import { importsOf } from '../house/imports.js';
import { nodes, parse } from '../house/syntax.js';
import { absolute, readText } from '../house/tree.js';
import { verifies } from '../verifies.js';

const read = (name: string) => ({ file: `src/protocol/${name}.ts`, text: readText(`src/protocol/${name}.ts`) });

/** Returns the names that a file exports or re-exports. */
function exportedNames(name: string): string[] {
  return parse(read(name)).statements.flatMap((statement) => {
    if (ts.isExportDeclaration(statement) && statement.exportClause && ts.isNamedExports(statement.exportClause)) {
      return statement.exportClause.elements.map((element) => element.name.text);
    }
    if (!ts.canHaveModifiers(statement) || !ts.getModifiers(statement)?.some(isExport)) return [];
    if (ts.isVariableStatement(statement)) {
      return statement.declarationList.declarations.map((declaration) => declaration.name.getText());
    }
    return [(statement as ts.DeclarationStatement).name?.getText() ?? ''];
  });
}

const isExport = ({ kind }: ts.Modifier): boolean => kind === ts.SyntaxKind.ExportKeyword;

/** Returns the modules that a module of the protocol loads, directly or indirectly. */
function loadedModules(name: string, loaded = new Set<string>()): ReadonlySet<string> {
  for (const { specifier, typeOnly } of importsOf(read(name)).imports) {
    if (typeOnly || loaded.has(specifier)) continue;
    loaded.add(specifier);
    const local = /^\.\/(.*)\.js$/.exec(specifier)?.[1];
    if (local !== undefined) loadedModules(local, loaded);
  }
  return loaded;
}

verifies('looops.export.tools', 'a tool can be written without loading the AI SDK or the runtime', async () => {
  const loaded = [...loadedModules('tool')];
  expect(loaded.length).toBeGreaterThan(0);
  expect(loaded.filter((specifier) => !specifier.startsWith('./'))).toEqual([]);
  expect(Object.keys(await import('../../src/protocol/tool.js')).sort()).toEqual([
    'ApprovalRequiredError',
    'loopsTool',
    'tool',
  ]);
  expect(exportedNames('tool')).toEqual(
    expect.arrayContaining(['LoopsTool', 'LoopsToolSet', 'ApprovalRequiredError', 'loopsTool', 'ApprovalPolicy']),
  );
});

verifies('looops.export.protocol', 'rondo/protocol exports every name of its parts', async () => {
  const all = exportedNames('index');
  const parts = ['events', 'tool', 'streaming', 'approval', 'live', 'loop', 'trace', 'json'].flatMap(exportedNames);
  expect(parts.length).toBeGreaterThan(60);
  expect(parts.filter((name) => !all.includes(name))).toEqual([]);
  expect(Object.keys(await import('../../src/protocol/index.js')).sort()).toEqual([
    'ApprovalRequiredError',
    'EVENT_TYPES',
    'approvalText',
    'loopsTool',
    'tool',
  ]);
});

const changedFiles = ['events', 'streaming'];

/** Compiles the tests of both files with a change. Returns the requirements of the tests that do not compile. */
function failingRequirements(change: (text: string) => string): ReadonlySet<string> {
  const { config } = ts.readConfigFile(absolute('tsconfig.json'), ts.sys.readFile);
  const { options } = ts.parseJsonConfigFileContent({ ...config, include: [] }, ts.sys, absolute('.'));
  const host = ts.createCompilerHost(options);
  const original = host.readFile;
  const changed = changedFiles.map((name) => absolute(`src/protocol/${name}.ts`));
  host.readFile = (file) => {
    const text = original(file);
    return text !== undefined && changed.includes(file) ? change(text) : text;
  };
  const tests = changedFiles.map((name) => absolute(`src/protocol/${name}.test.ts`));
  const program = ts.createProgram(tests, options, host);
  return new Set(
    tests.flatMap((file) => {
      const source = program.getSourceFile(file);
      return source === undefined
        ? []
        : program.getSemanticDiagnostics(source).map(({ start = 0 }) => citedAt(source, start));
    }),
  );
}

function citedAt(source: ts.SourceFile, position: number): string {
  for (const node of nodes(source)) {
    if (!ts.isCallExpression(node) || node.expression.getText(source) !== 'verifies') continue;
    const [id] = node.arguments;
    if (node.pos <= position && position < node.end && id && ts.isStringLiteral(id)) return id.text;
  }
  return `${source.fileName}:${position}`;
}

verifies('looops.event.types', 'a change of any shape breaks the compilation of its test', () => {
  const failing = failingRequirements((text) =>
    text.replace(/^(export interface [^{]*\{)/gm, '$1 readonly mutant?: true;'),
  );
  const shapes = [...pinnedIds('events'), ...pinnedIds('streaming')];
  expect(shapes).toHaveLength(12 + 10 + 3);
  expect(shapes.filter((id) => !failing.has(id))).toEqual([]);
  expect([...failingRequirements((text) => text)]).toEqual([]);
});

/** Returns the requirements whose types the tests of a file pin. */
function pinnedIds(name: string): readonly string[] {
  const source = parse({ file: `${name}.test.ts`, text: readText(`src/protocol/${name}.test.ts`) });
  const ids = [...nodes(source)].flatMap((node) => {
    if (!ts.isCallExpression(node) || node.expression.getText(source) !== 'verifies') return [];
    const [id] = node.arguments;
    return id && ts.isStringLiteral(id) && /expectTypeOf/.test(node.getText(source)) ? [id.text] : [];
  });
  return [...new Set(ids)];
}
