// The programs of the cookbook: each page quotes them as they are, and each prints what its comments promise.

import { type ChildProcess, execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { basename, join } from 'node:path';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { expect, onTestFinished } from 'vitest';
import { outputFaults, unpromisedPrints } from '../house/outputs.js';
import { blocksIn, commandFaults, commandsIn, outputsOf, withWrongPromises } from '../support/page-commands.js';
import { verifies } from '../verifies.js';

const execute = promisify(execFile);
const root = fileURLToPath(new URL('../..', import.meta.url));
const programs = join(root, 'examples', 'cookbook');
const pages = readdirSync(join(root, 'docs', 'cookbook')).filter((name) => name !== 'README.md');
const textOf = (page: string): string => readFileSync(join(root, 'docs', 'cookbook', page), 'utf8');

/** A program that a page quotes: a block of code below a line that ends with a link to the file. */
interface Quotation {
  readonly page: string;
  readonly file: string | undefined;
  readonly code: string;
}

function quotationsIn(page: string, text: string): Quotation[] {
  return [...text.matchAll(/^(.*)\n\n```(?:tsx?|javascript)\n([\s\S]*?)^```$/gm)].map(([, before = '', code = '']) => {
    const [, file] = /\]\(\.\.\/\.\.\/examples\/cookbook\/([^)]+)\)[^[]*:$/.exec(before) ?? [];
    return { page, file: file === undefined ? undefined : decodeURI(file), code };
  });
}

const quotations = pages.flatMap((page) => quotationsIn(page, textOf(page)));

verifies('docs.cookbook', 'the pages quote every program of the cookbook as it is', () => {
  const wrong = quotations.filter(
    ({ file, code }) => file === undefined || code !== readFileSync(join(programs, file), 'utf8'),
  );
  expect(wrong.map(({ page, file }) => `${page}: ${file ?? 'a program without a link to its file'}`)).toEqual([]);
  const files = readdirSync(programs, { recursive: true, encoding: 'utf8' }).filter((file) =>
    /\.m?[jt]sx?$/.test(file),
  );
  expect(files.length).toBeGreaterThan(10);
  const quoted = new Set(quotations.map(({ file }) => file));
  expect(files.filter((file) => !quoted.has(file))).toEqual([]);
  expect(quotationsIn('a.md', 'Text:\n\n```ts\nlet a;\n```\n')).toMatchObject([{ file: undefined }]);
});

verifies('docs.cookbook', 'the index lists every recipe', () => {
  const index = textOf('README.md');
  expect(pages.filter((page) => !index.includes(`](${page})`))).toEqual([]);
});

function newDirectory(): string {
  const directory = mkdtempSync(join(tmpdir(), 'rondo-cookbook-'));
  onTestFinished(() => rmSync(directory, { recursive: true, force: true, maxRetries: 3 }));
  return directory;
}

const TSX = ['--import', import.meta.resolve('tsx')];

/** Returns the environment of a program: without Rondo's variables. */
function environment(more: Readonly<Record<string, string>> = {}): Record<string, string | undefined> {
  const others = Object.entries(process.env).filter(([name]) => !name.startsWith('RONDO_'));
  return { ...Object.fromEntries(others), ...more };
}

/** Runs a program twice in a new directory. Returns the promises of its comments that a run breaks. */
async function brokenPromises(file: string, ...args: readonly string[]): Promise<string[]> {
  const directory = newDirectory();
  const code = readFileSync(join(programs, file), 'utf8');
  expect(unpromisedPrints(code), `${file} prints something that it does not promise`).toEqual([]);
  const faults: string[] = [];
  for (const run of ['first', 'second']) {
    const output = join(directory, `${run}.ndjson`);
    const env = environment({ RONDO_SNIPPET_OUTPUT: output, RONDO_SNIPPET_NAME: basename(file) });
    const recorder = new URL('../house/output-recorder.mjs', import.meta.url).href;
    const nodeArgs = [...TSX, '--import', recorder, join(programs, file), ...args];
    await execute(process.execPath, nodeArgs, { cwd: directory, env, timeout: 100_000 });
    const lines = readFileSync(output, 'utf8').trim().split('\n');
    const printed = lines.map((line) => JSON.parse(line));
    faults.push(...outputFaults(code, printed));
  }
  return faults;
}

/** Starts a server that prints its address. Returns the process and the address. */
async function startServer(file: string, args: readonly string[], env: Readonly<Record<string, string>>) {
  const options = { cwd: newDirectory(), env: environment(env), stdio: ['ignore', 'pipe', 'inherit'] as const };
  const server = spawn(process.execPath, [...TSX, file, ...args], { ...options, stdio: [...options.stdio] });
  onTestFinished(() => void server.kill('SIGKILL'));
  const lines = createInterface({ input: server.stdout ?? process.stdin });
  const [url] = (await once(lines, 'line')) as [string];
  return { server, url };
}

/** Terminates a server. Returns its exit code, or the signal that killed it. */
async function exitOf(server: ChildProcess): Promise<unknown> {
  const exited = once(server, 'exit');
  server.kill('SIGTERM');
  const [code, signal] = await exited;
  return code ?? signal;
}

verifies('docs.cookbook', 'mcp: the agent calls the tools of a server after their approval', async () => {
  expect(await brokenPromises('mcp/main.ts')).toEqual([]);
});

verifies('docs.cookbook', 'hono: a chat, an approval by the staff, and a graceful shutdown', async () => {
  const { server, url } = await startServer(join(programs, 'hono', 'server.ts'), [], { PORT: '0' });
  expect(await brokenPromises('client.ts', url)).toEqual([]);
  expect((await fetch(`${url}/api/approvals`)).status).toBe(401);
  const unknown = { method: 'POST', headers: { 'x-user': 'bob' }, body: '{"approved":true}' };
  expect((await fetch(`${url}/api/approvals/s-1.1:nothing`, unknown)).status).toBeGreaterThanOrEqual(400);
  expect(await exitOf(server)).toBe(0);
});

verifies('docs.cookbook', 'nextjs: the route handlers serve the same client, and the process shuts down', async () => {
  const application = join(programs, 'nextjs');
  const fixture = fileURLToPath(new URL('fixtures/next-server.ts', import.meta.url));
  const settings = { TSX_TSCONFIG_PATH: join(application, 'tsconfig.json') };
  const { server, url } = await startServer(fixture, [application], settings);
  expect(await brokenPromises('client.ts', url)).toEqual([]);
  expect(await exitOf(server)).toBe(0);
});

verifies('docs.cookbook', 'nextjs: a module that is evaluated again uses the same runtime', async () => {
  const application = join(programs, 'nextjs');
  const env = environment({
    TSX_TSCONFIG_PATH: join(application, 'tsconfig.json'),
    MODULE: join(application, 'rondo.ts'),
  });
  const code = `
    const [first, second] = await Promise.all(['', '?reloaded'].map((query) => import(process.env.MODULE + query)));
    const { rondo } = await first.getServices();
    console.log(first !== second, rondo === (await second.getServices()).rondo);
    await rondo.close();`;
  const args = [...TSX, '--input-type=module', '--eval', code];
  expect(await execute(process.execPath, args, { cwd: newDirectory(), env })).toMatchObject({
    stdout: 'true true\n',
  });
});

for (const recipe of ['nextjs', 'react'])
  verifies('docs.cookbook', `${recipe}: the files compile with the module resolution of a bundler`, async () => {
    const tsc = fileURLToPath(import.meta.resolve('typescript/lib/tsc.js'));
    const compiled = await execute(process.execPath, [tsc, '-p', join(programs, recipe)]).catch(({ stdout }) => stdout);
    expect(compiled).toMatchObject({ stdout: '' });
  });

for (const page of pages) {
  const blocks = commandsIn(blocksIn(textOf(page)));
  const promises = blocks.filter(({ promised }) => promised !== undefined);
  if (promises.length === 0) continue;
  verifies('docs.cookbook', `the commands in docs/cookbook/${page} print what is shown below them`, () => {
    const outputs = outputsOf(blocks, join('examples', 'cookbook', basename(page, '.md')));
    expect(commandFaults(blocks, outputs)).toEqual([]);
    expect(commandFaults(withWrongPromises(blocks), outputs)).toHaveLength(promises.length);
  });
}
