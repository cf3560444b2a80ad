// Tests the providers in a directory where the optional AI SDK packages are not installed.

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

/** Compiles the adapter into a directory of its own. */
function compileAdapter(): string {
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
  // Empty directories hide packages that are installed in a parent directory.
  for (const name of ['openai', 'anthropic', 'openai-compatible']) {
    mkdirSync(join(folder, 'node_modules/@ai-sdk', name), { recursive: true });
  }
  return folder;
}

const program = `
  import * as models from './adapters/models/index.js';
  const env = { OPENAI_API_KEY: 'sk-1', ANTHROPIC_API_KEY: 'sk-2' };
  const context = { origin: { directory: undefined, trusted: true }, turnId: 't1', replyCount: 0 };
  const errors = [];
  for (const create of [models.openaiProvider, models.anthropicProvider, models.openaiCompatibleProvider]) {
    const provider = create({ env });
    const ref = { id: provider.id, model: 'm', options: { baseURL: 'http://127.0.0.1:1' } };
    for (let attempt = 0; attempt < 2; attempt++) {
      await provider.open(ref, context).catch(({ code, message, data }) => errors.push([code, message, data]));
    }
  }
  await models.mockProvider().open({ id: 'mock', model: 'mock-1' }, context);
  process.stdout.write(JSON.stringify(errors));
`;

verifies(
  'model.failure',
  'a provider without its package fails with the command that installs it, and the other providers load',
  () => {
    const folder = compileAdapter();
    writeFileSync(join(folder, 'program.js'), program);
    const errors = JSON.parse(execFileSync(process.execPath, ['program.js'], { cwd: folder, encoding: 'utf8' }));
    rmSync(folder, { recursive: true });
    const packages = [
      'openai@3',
      'openai@3',
      'anthropic@3',
      'anthropic@3',
      'openai-compatible@2',
      'openai-compatible@2',
    ];
    expect(errors).toHaveLength(packages.length);
    for (const [index, name] of packages.entries()) {
      const [code, message, data] = errors[index];
      expect(code).toBe('BACKEND_FAILED');
      expect(message).toContain(`run: npm install @ai-sdk/${name}`);
      expect(data).toEqual({ retryable: false });
    }
  },
);
