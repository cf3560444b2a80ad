// The published declarations, compiled as a consumer compiles them: several versions of the compiler, both ways to resolve
// modules, with and without exact optional properties, without the DOM library and without `skipLibCheck`.

import { cpSync, mkdirSync, mkdtempSync, rmSync, statSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import type TypeScript from 'typescript';
import { afterAll, beforeAll, expect } from 'vitest';
import { absolute, readText } from '../house/tree.js';
import { verifies } from '../verifies.js';

/** The oldest compiler that the package supports, the last one before 6, and the current one. */
const compilers = ['typescript-5.4', 'typescript-5.9', 'typescript'];
interface Settings {
  readonly module: string;
  readonly moduleResolution: string;
  readonly exactOptionalPropertyTypes?: boolean;
}

const nodeNext: Settings = { module: 'nodenext', moduleResolution: 'nodenext' };
/** Each resolution is combined with one kind of optional properties. */
const combinations: readonly Settings[] = [
  { ...nodeNext, exactOptionalPropertyTypes: true },
  { module: 'esnext', moduleResolution: 'bundler', exactOptionalPropertyTypes: false },
];

let folder = '';

beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), 'rondo-types-'));
  const installed = join(folder, 'node_modules', 'rondo');
  mkdirSync(installed, { recursive: true });
  cpSync(absolute('package.json'), join(installed, 'package.json'));
  const isDeclaration = (path: string): boolean => statSync(path).isDirectory() || path.endsWith('.d.ts');
  cpSync(absolute('dist'), join(installed, 'dist'), { recursive: true, filter: isDeclaration });
  const { dependencies } = JSON.parse(readText('package.json')) as { dependencies: Record<string, string> };
  mkdirSync(join(folder, 'node_modules', '@types'));
  for (const name of [...Object.keys(dependencies), '@types/node', 'undici-types']) {
    mkdirSync(dirname(join(folder, 'node_modules', name)), { recursive: true });
    symlinkSync(absolute(`node_modules/${name}`), join(folder, 'node_modules', name));
  }
  writeFileSync(join(folder, 'package.json'), '{ "type": "module" }');
});

afterAll(() => rmSync(folder, { recursive: true, force: true }));

/** Compiles a consumer. Returns the errors, those in the declarations of every package included. */
function errorsOf(ts: typeof TypeScript, text: string, settings: Settings): string[] {
  const file = join(folder, 'consumer.ts');
  writeFileSync(file, text);
  const json = { strict: true, noEmit: true, skipLibCheck: false, target: 'es2022', lib: ['es2022'], types: ['node'] };
  const { options, errors } = ts.convertCompilerOptionsFromJson({ ...json, ...settings }, folder);
  const program = ts.createProgram([file], options);
  return [...errors, ...ts.getPreEmitDiagnostics(program)].map(({ file, start = 0, messageText }) => {
    const line = file ? `${file.fileName}:${file.getLineAndCharacterOfPosition(start).line + 1}: ` : '';
    return line + ts.flattenDiagnosticMessageText(messageText, '\n');
  });
}

/** Imports every entry point of the package. */
function allEntryPoints(): string {
  const { exports } = JSON.parse(readText('package.json')) as { exports: Record<string, unknown> };
  const names = Object.keys(exports).map((subpath) => subpath.replace('.', 'rondo'));
  return names.map((name, index) => `export type * as entry${index} from '${name}';`).join('\n');
}

for (const compiler of compilers) {
  verifies(
    'types.matrix',
    `the types are clean with ${compiler}`,
    async () => {
      const { default: ts } = (await import(compiler)) as { default: typeof TypeScript };
      const text = `${readText('spec/support/package-consumer.ts')}\n${allEntryPoints()}`;
      for (const settings of combinations) {
        expect(errorsOf(ts, text, settings), `${ts.version} ${JSON.stringify(settings)}`).toEqual([]);
      }
    },
    300_000,
  );
}

verifies('types.matrix', 'the compiler rejects a consumer that contradicts a schema', async () => {
  const { default: ts } = await import('typescript');
  const text = readText('spec/support/package-consumer.ts');
  const wrong = text
    .replace('run: async ({ name, mood, tags }, scope) => {', '$& name.toFixed();')
    .replace('return { text: `', 'return { texts: `');
  const errors = errorsOf(ts, wrong, nodeNext);
  expect(errors).toContainEqual(expect.stringContaining("'toFixed' does not exist"));
  expect(errors).toContainEqual(expect.stringContaining("Property 'text' is missing"));
});
