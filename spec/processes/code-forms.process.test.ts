// The same loops, compiled in several ways and run by several processes: what one form starts, another one finishes.

import { execFile } from 'node:child_process';
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
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

/** The program of the refund desk in three forms; each is the arguments of Node, and runs in its own directory. */
interface ProgramForms {
  readonly tsx: readonly string[];
  readonly compiled: readonly string[];
  readonly bundled: readonly string[];
}

/** Writes the sources for tsx, compiles them, and bundles them together with the package and its dependencies. */
async function writeProgram(directory: string): Promise<ProgramForms> {
  const [sources, compiled] = [join(directory, 'sources'), join(directory, 'compiled')];
  for (const folder of [sources, compiled]) mkdirSync(folder);
  const compilerOptions = { target: ts.ScriptTarget.ES2022, module: ts.ModuleKind.ESNext };
  for (const name of ['refund-app', 'refund-desk']) {
    const text = readFileSync(pathOf(`fixtures/${name}.ts`), 'utf8');
    writeFileSync(join(sources, `${name}.ts`), text);
    writeFileSync(join(compiled, `${name}.js`), ts.transpileModule(text, { compilerOptions }).outputText);
  }
  // Without a configuration of its own, tsx uses that of this repository, which maps the package to its sources.
  writeFileSync(join(sources, 'tsconfig.json'), '{ "compilerOptions": { "module": "nodenext" } }');
  const input = pathOf('fixtures/refund-app.ts');
  const bundle = await rolldown({ input, platform: 'node', external: ['libsql'], tsconfig: false });
  await bundle.write({ dir: join(directory, 'bundled'), format: 'esm', minify: true });
  await bundle.close();
  return {
    tsx: ['--import', 'tsx', join(sources, 'refund-app.ts')],
    compiled: [join(compiled, 'refund-app.js')],
    bundled: [join(directory, 'bundled', 'refund-app.js')],
  };
}

/** Runs the program in one form: `start` runs a turn until it asks, `finish` approves what is pending. */
async function runProgram(form: readonly string[], data: string, verb: 'start' | 'finish'): Promise<Report> {
  const program = form.at(-1) ?? '';
  const cwd = dirname(program);
  const env = { ...process.env, DESK_SCRIPT: join(cwd, '..', 'script.json') };
  const { stdout } = await run(process.execPath, [...form, join(cwd, '..', data), verb], {
    cwd,
    env,
    timeout: 120_000,
  });
  return JSON.parse(stdout) as Report;
}

const PAUSED = { status: 'paused', performed: [], changed: [] };
const REFUNDED = { status: 'ok', output: { text: 'Refunded.' }, performed: ['refund 7'], changed: [] };

verifies(
  'identity.code',
  'a turn that pauses under tsx is approved and finished by plain Node and from a bundle',
  async () => {
    const { tsx, compiled, bundled } = await writeProgram(newDirectory());
    for (const [name, form] of Object.entries({ compiled, bundled })) {
      expect(await runProgram(tsx, name, 'start')).toMatchObject(PAUSED);
      expect(await runProgram(form, name, 'finish'), name).toMatchObject(REFUNDED);
    }
  },
  300_000,
);

verifies(
  'identity.change',
  'a changed instruction of a paused turn is reported by name, and the turn continues with the code it began with',
  async () => {
    const { tsx, compiled } = await writeProgram(newDirectory());
    expect(await runProgram(tsx, 'data', 'start')).toMatchObject(PAUSED);
    const desk = join(dirname(tsx.at(-1) ?? ''), 'refund-desk.ts');
    writeFileSync(desk, readFileSync(desk, 'utf8').replace('Refund what is broken.', 'Refund what is broken or lost.'));
    const changed = await runProgram(tsx, 'data', 'finish');
    expect(changed).toMatchObject({
      status: 'error',
      error: {
        code: 'REPLAY_MISMATCH',
        message: expect.stringMatching(
          /^desk 1\.0\.0: instructions changed\. Step .*\. Raise the version .* and register the old version too/,
        ),
      },
      performed: [],
      changed: [{ loop: 'desk@1.0.0', parts: ['instructions'], breaks: true }],
    });
    expect(await runProgram(compiled, 'data', 'finish')).toMatchObject(REFUNDED);
  },
  300_000,
);
