// The backends without the packages that they can do without: real files in a folder where nothing is installed.

import { execFileSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import ts from 'typescript';
import { expect } from 'vitest';
import { verifies } from '../verifies.js';

const root = fileURLToPath(new URL('../..', import.meta.url));
const compilerOptions = { target: ts.ScriptTarget.ES2023, module: ts.ModuleKind.ESNext, verbatimModuleSyntax: true };

/** The adapter as it is built, alone in a folder. */
function alone(): string {
  const folder = mkdtempSync(join(tmpdir(), 'rondo-alone-'));
  const sourcesIn = (directory: string): readonly string[] => {
    const names = readdirSync(join(root, 'src', directory)).filter((name) => /(?<!\.test)\.ts$/.test(name));
    return names.map((name) => `${directory}/${name}`);
  };
  for (const file of [...sourcesIn('adapters/models'), ...sourcesIn('base'), 'base/errors.ts']) {
    const target = join(folder, file.replace(/\.ts$/, '.js'));
    mkdirSync(dirname(target), { recursive: true });
    const text = readFileSync(join(root, 'src', file), 'utf8');
    writeFileSync(target, ts.transpileModule(text, { compilerOptions }).outputText);
  }
  writeFileSync(join(folder, 'package.json'), '{"type": "module"}');
  // An empty folder hides what may be installed further up on this machine.
  for (const name of ['openai', 'anthropic', 'openai-compatible']) {
    mkdirSync(join(folder, 'node_modules/@ai-sdk', name), { recursive: true });
  }
  return folder;
}

const program = `
  import * as models from './adapters/models/index.js';
  const env = { OPENAI_API_KEY: 'sk-1', ANTHROPIC_API_KEY: 'sk-2' };
  const asking = { origin: { directory: undefined, trusted: true }, turn: 't1', answered: 0 };
  const told = [];
  for (const make of [models.openaiBackend, models.anthropicBackend, models.openaiCompatibleBackend]) {
    const backend = make({ env });
    const ref = { id: backend.id, model: 'm', options: { baseURL: 'http://127.0.0.1:1' } };
    for (let twice = 0; twice < 2; twice++) {
      await backend.open(ref, asking).catch(({ code, message, data }) => told.push([code, message, data]));
    }
  }
  await models.mockBackend().open({ id: 'mock', model: 'mock-1' }, asking);
  process.stdout.write(JSON.stringify(told));
`;

verifies(
  'model.failure',
  'the failure of a backend whose package is not installed says how to install it, and the others load',
  () => {
    const folder = alone();
    writeFileSync(join(folder, 'program.js'), program);
    const told = JSON.parse(execFileSync(process.execPath, ['program.js'], { cwd: folder, encoding: 'utf8' }));
    rmSync(folder, { recursive: true });
    const packages = [
      'openai@3',
      'openai@3',
      'anthropic@3',
      'anthropic@3',
      'openai-compatible@2',
      'openai-compatible@2',
    ];
    expect(told).toHaveLength(packages.length);
    for (const [index, name] of packages.entries()) {
      const [code, message, data] = told[index];
      expect(code).toBe('BACKEND_FAILED');
      expect(message).toContain(`run: npm install @ai-sdk/${name}`);
      expect(data).toEqual({ retryable: false });
    }
  },
);
