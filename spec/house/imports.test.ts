import { expect } from 'vitest';
import { verifies } from '../verifies.js';
import { COMPUTED, importsOf } from './imports.js';
import { type Declared, importFaults } from './rings.js';
import { exists, isTest, readText, sources } from './tree.js';

const declared: Declared = { root: ['libsql', '@scope/pkg'], web: ['react'] };

const forbidden: readonly [file: string, specifier: string][] = [
  ['src/protocol/entry.ts', '../kernel/session.js'],
  ['src/protocol/entry.ts', 'node:crypto'],
  ['src/protocol/entry.ts', 'libsql'],
  ['src/journal/writer.ts', '../kernel/run.js'],
  ['src/views/trace.ts', '../kernel/session.js'],
  ['src/adapters/sqlite/store.ts', '../../kernel/session.js'],
  ['src/kernel/session.ts', 'node:crypto'],
  ['src/kernel/session.ts', '../views/trace.js'],
  ['src/kernel/session.ts', '../adapters/memory/index.js'],
  ['src/kernel/session.ts', '../index.js'],
  ['src/kernel/session.ts', 'node:fs'],
  ['src/kernel/session.ts', 'libsql'],
  ['src/kernel/session.ts', COMPUTED],
  ['src/views/trace.ts', '../loops/agent.js'],
  ['src/views/trace.ts', 'libsql'],
  ['src/views/trace.ts', 'node:fs'],
  ['src/loops/agent.ts', '../layers/retry.js'],
  ['src/loops/agent.ts', '../host/turn.js'],
  ['src/loops/agent.ts', 'node:fs/promises'],
  ['src/layers/retry.ts', '../loops/agent.js'],
  ['src/layers/retry.ts', 'node:net'],
  ['src/host/turn.ts', '../adapters/memory/index.js'],
  ['src/host/turn.ts', '../surfaces/cli.js'],
  ['src/host/turn.ts', 'node:child_process'],
  ['src/adapters/sqlite/journal.ts', '../memory/index.js'],
  ['src/adapters/sqlite.ts', './memory.js'],
  ['src/adapters/sqlite/journal.ts', '../../views/trace.js'],
  ['src/adapters/sqlite/journal.ts', '../../host/engine.js'],
  ['src/adapters/sqlite/journal.ts', 'undeclared'],
  ['src/adapters/sqlite/journal.ts', '@scope/undeclared'],
  ['src/adapters/sqlite/journal.ts', 'fs'],
  ['src/surfaces/cli.ts', 'node:vm'],
  ['src/adapters/sqlite/journal.ts', 'node:vm'],
  ['src/surfaces/cli.ts', '../adapters/sqlite/index.js'],
  ['src/surfaces/cli.ts', '../kernel/session.js'],
  ['src/surfaces/cli.ts', '../layers/retry.js'],
  ['src/testing/cases.ts', '../adapters/sqlite/index.js'],
  ['src/testing/cases.ts', '../surfaces/cli.js'],
  ['src/testing/cases.ts', '../../spec/verifies.js'],
  ['src/testing/cases.ts', 'rondo'],
  ['src/extras/thing.ts', '../kernel/session.js'],
  ['src/loose.ts', './kernel/session.js'],
  ['src/loose.ts', 'libsql'],
  ['web/app.tsx', '../src/kernel/session.js'],
  ['web/app.tsx', 'rondo'],
  ['web/app.tsx', 'libsql'],
];

const allowed: readonly [file: string, specifier: string][] = [
  ['src/kernel/session.ts', '../protocol/entry.js'],
  ['src/kernel/session.ts', '../journal/store.js'],
  ['src/journal/record.ts', 'node:crypto'],
  ['src/views/graph/index.ts', '../../journal/view.js'],
  ['src/loops/plan/run.ts', '../../views/context.js'],
  ['src/layers/retry.ts', '../kernel/layer.js'],
  ['src/host/turn.ts', '../layers/retry.js'],
  ['src/adapters/sqlite/journal.ts', './schema.js'],
  ['src/adapters/sqlite/journal.ts', 'libsql'],
  ['src/adapters/mcp.ts', '@scope/pkg/deep'],
  ['src/adapters/sqlite/journal.ts', 'node:fs'],
  ['src/surfaces/cli.ts', './compose.js'],
  ['src/surfaces/compose.ts', '../adapters/sqlite/index.js'],
  ['src/testing/cases.ts', '../adapters/memory/index.js'],
  ['src/testing/index.ts', '../adapters/models/scripted.js'],
  ['src/index.ts', './adapters/memory/index.js'],
  ['web/app.tsx', 'rondo/protocol'],
  ['web/app.tsx', '../src/protocol/entry.js'],
  ['web/app.tsx', 'react'],
];

function faultsOf(file: string, specifier: string, typeOnly = false): string[] {
  return importFaults([{ file, imports: [{ specifier, typeOnly }] }], declared);
}

function runtimePackages(manifest: string): string[] {
  if (!exists(manifest)) return [];
  const { dependencies, optionalDependencies, peerDependencies } = JSON.parse(readText(manifest));
  return Object.keys({ ...dependencies, ...optionalDependencies, ...peerDependencies });
}

verifies('house.imports', 'every folder imports only what the table allows', () => {
  const files = sources(['src', 'web'])
    .filter(({ file }) => !isTest(file) && !/\.config\.[cm]?[jt]s$/.test(file))
    .map(importsOf);
  const packages = { root: runtimePackages('package.json'), web: runtimePackages('web/package.json') };
  expect(importFaults(files, packages)).toEqual([]);
});

for (const [file, specifier] of forbidden) {
  verifies('house.imports', `${file} may not import ${specifier}`, () => {
    expect(faultsOf(file, specifier)).toHaveLength(1);
  });
}

for (const [file, specifier] of allowed) {
  verifies('house.imports', `${file} may import ${specifier}`, () => {
    expect(faultsOf(file, specifier)).toEqual([]);
  });
}

verifies('house.imports', 'an adapter imports only types from its port', () => {
  expect(faultsOf('src/adapters/openai.ts', '../loops/model.js', true)).toEqual([]);
  expect(faultsOf('src/adapters/openai.ts', '../loops/model.js', false)).toHaveLength(1);
  expect(faultsOf('src/adapters/openai.ts', '../views/trace.js', true)).toHaveLength(1);
});

verifies('house.imports', 'every spelling of an import is found', () => {
  const text = `
    import a from 'a';
    import type { B } from 'b';
    import { type C } from 'c';
    export { d } from 'd';
    export type { E } from 'e';
    import 'f';
    const g = await import('g');
    const h = require('h');
    const i = process.getBuiltinModule('i');
    type J = import('j').J;
    const k = await import(a + B);
    // import 'not';
    const text = "import 'neither'";`;
  const { imports } = importsOf({ file: 'src/x.ts', text });
  expect(imports.map(({ specifier, typeOnly }) => `${specifier}${typeOnly ? ':type' : ''}`)).toEqual([
    'a',
    'b:type',
    'c',
    'd',
    'e:type',
    'f',
    'g',
    'h',
    'i',
    'j:type',
    COMPUTED,
  ]);
});
