// The same loops, compiled in three ways and run by plain Node processes: what one form starts, another one finishes.

import { execFile } from 'node:child_process';
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { promisify } from 'node:util';
import { rolldown } from 'rolldown';
import ts from 'typescript';
import { expect, onTestFinished } from 'vitest';
import { verifies } from '../verifies.js';

const run = promisify(execFile);
const pathOf = (name: string): string => fileURLToPath(new URL(name, import.meta.url));
const FIXTURE = pathOf('fixtures/refund-desk.ts');
const SCRIPT = [{ toolCalls: [{ name: 'refund', args: { order: '7', amount: 5 } }] }, { text: 'Refunded.' }];

interface Report {
  readonly status: string;
  readonly output?: unknown;
  readonly performed: readonly string[];
  readonly sources: readonly string[];
  readonly changed: readonly unknown[];
}

/** Compiles the loops into a directory of the package, from which `rondo` resolves to the built library. */
async function compileForms(directory: string): Promise<readonly string[]> {
  const text = readFileSync(FIXTURE, 'utf8');
  const transpiled = (name: string, target: ts.ScriptTarget): string => {
    const compilerOptions = { target, module: ts.ModuleKind.ESNext, removeComments: target < ts.ScriptTarget.ES2022 };
    writeFileSync(join(directory, name), ts.transpileModule(text, { compilerOptions }).outputText);
    return name;
  };
  const modern = transpiled('modern.mjs', ts.ScriptTarget.ES2022);
  const older = transpiled('older.mjs', ts.ScriptTarget.ES2015);
  const bundle = await rolldown({ input: FIXTURE, platform: 'node', external: ['rondo'] });
  await bundle.write({ file: join(directory, 'bundle.mjs'), format: 'esm', minify: true });
  await bundle.close();
  return [modern, older, 'bundle.mjs'];
}

function newDirectory(): string {
  const parent = pathOf('../../dist');
  mkdirSync(parent, { recursive: true });
  const directory = mkdtempSync(join(parent, 'forms-'));
  onTestFinished(() => rmSync(directory, { recursive: true, force: true }));
  writeFileSync(join(directory, 'script.json'), JSON.stringify(SCRIPT));
  return directory;
}

verifies(
  'identity.code',
  'a turn that pauses in one compiled form is approved and finished in the others',
  async () => {
    const directory = newDirectory();
    const forms = await compileForms(directory);
    const act = async (form: string, file: string, ...args: readonly string[]): Promise<Report> => {
      const module = pathToFileURL(join(directory, form)).href;
      const env = { ...process.env, DESK_SCRIPT: join(directory, 'script.json') };
      const { stdout } = await run(
        process.execPath,
        [pathOf('fixtures/desk-process.mjs'), module, join(directory, file), ...args],
        { env, timeout: 120_000 },
      );
      return JSON.parse(stdout) as Report;
    };
    const seen = new Set<string>();
    for (const [index, form] of forms.entries()) {
      const other = forms[(index + 1) % forms.length] ?? '';
      const file = `${index}.db`;
      const asked = await act(form, file, 'start', 'desk', '{"prompt":"My lamp broke."}');
      expect(asked, form).toMatchObject({ status: 'paused', performed: [], changed: [] });
      expect((await act(form, file, 'start', 'book', '{"amount":3}')).status, form).toBe('paused');
      const finished = await act(other, file, 'finish', 'desk');
      expect(finished, `${form} to ${other}`).toMatchObject({
        status: 'ok',
        output: { text: 'Refunded.' },
        changed: [],
      });
      expect(finished.performed).toEqual(['refund 7']);
      expect(await act(other, file, 'finish', 'book')).toMatchObject({ status: 'ok', output: { booked: 3 } });
      seen.add(JSON.stringify(asked.sources));
    }
    expect(seen.size, 'the forms must differ in the source text of the functions').toBe(forms.length);
  },
  300_000,
);
