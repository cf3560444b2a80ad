// The wire protocol as a package: what each way in holds, and whether the compiler notices when a shape changes.

import ts from 'typescript';
import { expect } from 'vitest';
import { importsOf } from '../house/imports.js';
import { nodes, parse } from '../house/syntax.js';
import { absolute, readText } from '../house/tree.js';
import { verifies } from '../verifies.js';

const read = (name: string) => ({ file: `src/protocol/${name}.ts`, text: readText(`src/protocol/${name}.ts`) });

/** The names that a file declares and exports, or passes on. */
function exported(name: string): string[] {
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

verifies(
  'looops.export.tools',
  'a tool cannot be written without loading the AI SDK or half of the runtime',
  async () => {
    const loaded = new Set(['./tool.js']);
    for (const specifier of loaded) {
      const { imports } = importsOf(read(specifier.slice(2, -3)));
      for (const { specifier: target, typeOnly } of imports) if (!typeOnly) loaded.add(target);
    }
    expect([...loaded].sort()).toEqual(['./thenable.js', './tool-approval.js', './tool-schema.js', './tool.js']);
    expect(Object.keys(await import('../../src/protocol/tool.js')).sort()).toEqual([
      'ApprovalRequiredError',
      'loopsTool',
    ]);
    expect(exported('tool')).toEqual(
      expect.arrayContaining(['LoopsTool', 'LoopsToolSet', 'ApprovalRequiredError', 'loopsTool', 'ApprovalPolicy']),
    );
  },
);

verifies('looops.export.protocol', 'a name of the protocol is found in its part and not in the whole', async () => {
  const whole = exported('index');
  const parts = ['events', 'tool', 'streaming', 'approval', 'live', 'loop', 'trace', 'json'].flatMap(exported);
  expect(parts.length).toBeGreaterThan(60);
  expect(parts.filter((name) => !whole.includes(name))).toEqual([]);
  expect(Object.keys(await import('../../src/protocol/index.js')).sort()).toEqual([
    'ApprovalRequiredError',
    'EVENT_TYPES',
    'loopsTool',
  ]);
});

const changing = ['events', 'streaming'];

/** The tests of both files that the compiler refuses, by the requirement they cite. */
function refused(change: (text: string) => string): ReadonlySet<string> {
  const { config } = ts.readConfigFile(absolute('tsconfig.json'), ts.sys.readFile);
  const { options } = ts.parseJsonConfigFileContent({ ...config, include: [] }, ts.sys, absolute('.'));
  const host = ts.createCompilerHost(options);
  const original = host.readFile;
  const changed = changing.map((name) => absolute(`src/protocol/${name}.ts`));
  host.readFile = (file) => {
    const text = original(file);
    return text !== undefined && changed.includes(file) ? change(text) : text;
  };
  const tests = changing.map((name) => absolute(`src/protocol/${name}.test.ts`));
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

verifies('looops.event.types', 'a shape changes and no test of it fails to compile', () => {
  const grown = refused((text) => text.replace(/^(export interface [^{]*\{)/gm, '$1 readonly mutant?: true;'));
  const shapes = [...pinnedIds('events'), ...pinnedIds('streaming')];
  expect(shapes).toHaveLength(12 + 10 + 3);
  expect(shapes.filter((id) => !grown.has(id))).toEqual([]);
  expect([...refused((text) => text)]).toEqual([]);
});

/** The requirements that the tests of a file cite and whose types it pins. */
function pinnedIds(name: string): readonly string[] {
  const source = parse({ file: `${name}.test.ts`, text: readText(`src/protocol/${name}.test.ts`) });
  const ids = [...nodes(source)].flatMap((node) => {
    if (!ts.isCallExpression(node) || node.expression.getText(source) !== 'verifies') return [];
    const [id] = node.arguments;
    return id && ts.isStringLiteral(id) && /expectTypeOf/.test(node.getText(source)) ? [id.text] : [];
  });
  return [...new Set(ids)];
}
