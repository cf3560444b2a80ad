// Checks of what the command line takes from a project, and writes into one.

import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  realpathSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { expect, onTestFinished } from 'vitest';
import type { Terminal } from '../../src/surfaces/cli/terminal.js';
import type { Invocation } from '../../src/surfaces/cli/verb.js';
import type { LibraryParts } from './library.js';

export const projectParts: LibraryParts = [
  'surfaces/compose.js',
  'surfaces/cli/verbs/completion.js',
  'surfaces/cli/write-project.js',
  'surfaces/output-path.js',
];

type ProjectLibrary = typeof import('../../src/surfaces/compose.js') &
  typeof import('../../src/surfaces/cli/verbs/completion.js') &
  typeof import('../../src/surfaces/cli/write-project.js') &
  typeof import('../../src/surfaces/output-path.js');

type Check = (library: ProjectLibrary) => Promise<void>;

function directory(files: Readonly<Record<string, string>> = {}): string {
  const root = realpathSync(mkdtempSync(join(tmpdir(), 'rondo-project-')));
  onTestFinished(() => rmSync(root, { recursive: true, force: true }));
  for (const [name, content] of Object.entries(files)) {
    mkdirSync(dirname(join(root, name)), { recursive: true });
    writeFileSync(join(root, name), content);
  }
  return root;
}

/** Returns an invocation in a directory, and the output that it prints. */
function invocation(cwd: string, args: readonly string[]): Invocation & { readonly printed: string[] } {
  const printed: string[] = [];
  const terminal = {
    print: async (text: string) => void printed.push(text),
    printJson: async () => undefined,
    printToStderr: () => undefined,
  } as unknown as Terminal;
  return { args, options: {}, settingsInput: { flags: {}, env: {}, cwd }, terminal, json: false, printed };
}

const environmentOf = async ({ loadSettings }: ProjectLibrary, text: string, trust: readonly string[]) => {
  const cwd = directory({ '.env': text });
  return (await loadSettings({ flags: { trust }, env: { SHOP_KEY: 'mine' }, cwd })).env;
};

const untrustedEnvFile: Check = async (library) =>
  expect(await environmentOf(library, 'OTHER_KEY=theirs', [])).toEqual({ SHOP_KEY: 'mine' });

const existingVariable: Check = async (library) =>
  expect(await environmentOf(library, 'SHOP_KEY=theirs', ['.'])).toEqual({ SHOP_KEY: 'mine' });

const controllingVariable: Check = async (library) =>
  expect(await environmentOf(library, 'RONDO_TRUST=/\nOPENAI_BASE_URL=https://evil.example', ['.'])).toEqual({
    SHOP_KEY: 'mine',
  });

const scriptBesideDefinitions: Check = async ({ loadSettings, loadLoops }) => {
  const mark = join(directory(), 'mark');
  const script = `import { writeFileSync } from 'node:fs';\nwriteFileSync(${JSON.stringify(mark)}, '');\n`;
  const cwd = directory({ 'loops/seed-database.mjs': script });
  await loadLoops(await loadSettings({ flags: { trust: ['.'] }, env: {}, cwd }));
  expect(existsSync(mark)).toBe(false);
};

const hostileId: Check = async ({ completion }) => {
  const loop = { id: '$(touch executed)', name: 'A', version: '1.0.0', kind: 'tool', inputSchema: true };
  const definition = { ...loop, outputSchema: true, tool: { implementation: 'builtin:echo' } };
  const call = invocation(directory({ 'loops/a.json': JSON.stringify(definition) }), ['ids', 'run']);
  await completion(call);
  expect(call.printed.join('')).toBe('');
};

const existingFile: Check = async ({ writeProject }) => {
  const cwd = directory({ 'b.json': 'mine' });
  const files = ['a.json', 'b.json'].map((path) => ({ path, text: 'theirs' }));
  expect(await writeProject(cwd, files, () => false).catch(() => [])).toEqual(['b.json']);
  expect(readdirSync(cwd)).toEqual(['b.json']);
};

const linkOfClone: Check = async ({ writeOutput }) => {
  const [outside, clone] = [directory(), directory()];
  symlinkSync(outside, join(clone, 'out'));
  expect(() => writeOutput(join(clone, 'out/receipts.json'), Buffer.alloc(1), () => false)).toThrow('is not trusted');
  expect(readdirSync(outside)).toEqual([]);
};

export const projectChecks = {
  'nothing is read from an untrusted .env': untrustedEnvFile,
  'a .env replaces no variable': existingVariable,
  'a .env sets only keys': controllingVariable,
  'a script beside the definitions is not run': scriptBesideDefinitions,
  'an id that a shell could evaluate is not offered': hostileId,
  'a directory with a file of the template stays as it is': existingFile,
  'an output follows no link of a clone to the outside': linkOfClone,
} as const satisfies Record<string, Check>;
