// Checks of `rondo trust`: which directories it stores, where, and with which permissions.

import {
  existsSync,
  lstatSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  realpathSync,
  rmdirSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { expect, onTestFinished } from 'vitest';
import type { Terminal } from '../../src/surfaces/cli/terminal.js';
import type { LibraryParts } from './library.js';

export const trustParts: LibraryParts = [
  'surfaces/cli/verbs/trust.js',
  'surfaces/authority.js',
  'adapters/files/trust-file.js',
];

type TrustLibrary = typeof import('../../src/surfaces/cli/verbs/trust.js') &
  typeof import('../../src/surfaces/authority.js') &
  typeof import('../../src/adapters/files/trust-file.js');

type Check = (library: TrustLibrary) => Promise<void>;

/** An operator with a home and a project, both empty. */
class Operator {
  readonly root = realpathSync(mkdtempSync(join(tmpdir(), 'rondo-trust-')));
  readonly home = this.directory('home');
  readonly project = this.directory('project');
  readonly file = join(this.home, '.config/rondo/trust.toml');

  constructor() {
    onTestFinished(() => rmSync(this.root, { recursive: true, force: true }));
  }

  directory(name: string): string {
    const path = join(this.root, name);
    mkdirSync(path, { recursive: true });
    return path;
  }

  /** Runs `rondo trust` in the project. Returns '', or the message of the refusal. */
  async trust({ trust }: TrustLibrary, directory: string, env: Readonly<Record<string, string>> = {}): Promise<string> {
    const terminal = { printJson: async () => undefined, printToStderr: () => undefined } as unknown as Terminal;
    const settingsInput = { flags: {}, env: { HOME: this.home, ...env }, cwd: this.project };
    return trust({ args: [directory], options: {}, settingsInput, terminal, json: true }).then(
      () => '',
      (error: Error) => error.message,
    );
  }
}

const content = (...directories: readonly string[]) => ({ directories, send: new Map(), destinations: [] });

const mode = (path: string): number => statSync(path).mode & 0o777;

const privateFile: Check = async (library) => {
  const operator = new Operator();
  expect(await operator.trust(library, '.')).toBe('');
  expect([mode(operator.file), mode(dirname(operator.file))]).toEqual([0o600, 0o700]);
};

const plantedDraft: Check = async ({ saveTrustFile }) => {
  const { file, root } = new Operator();
  mkdirSync(dirname(file), { recursive: true });
  const victim = join(root, 'victim');
  writeFileSync(victim, 'mine');
  symlinkSync(victim, join(dirname(file), `.trust.toml.${process.pid}`));
  await saveTrustFile(file, content('/a'));
  expect([readFileSync(victim, 'utf8'), lstatSync(file).isFile()]).toEqual(['mine', true]);
};

const linkedFile: Check = async ({ saveTrustFile, loadTrustFile }) => {
  const operator = new Operator();
  const target = join(operator.directory('dotfiles'), 'trust.toml');
  await saveTrustFile(target, content());
  mkdirSync(dirname(operator.file), { recursive: true });
  symlinkSync(target, operator.file);
  await saveTrustFile(operator.file, content('/a'));
  expect(lstatSync(operator.file).isSymbolicLink()).toBe(true);
  expect((await loadTrustFile(target)).directories).toEqual(['/a']);
};

const failedWrite: Check = async ({ saveTrustFile }) => {
  const { file } = new Operator();
  mkdirSync(file, { recursive: true });
  await expect(saveTrustFile(file, content('/a'))).rejects.toMatchObject({ code: 'CONFIG_INVALID' });
  expect(readdirSync(dirname(file))).toEqual(['trust.toml']);
};

const anyName: Check = async ({ saveTrustFile, loadTrustFile }) => {
  const { file } = new Operator();
  const names = ['/a\u007fb', '/a"b\\c', '/a\nb', '/\u202e'];
  await saveTrustFile(file, content(...names));
  expect((await loadTrustFile(file)).directories).toEqual(names);
};

const fileInsideProject: Check = async (library) => {
  const operator = new Operator();
  const env = { XDG_CONFIG_HOME: join(operator.project, 'config') };
  expect(await operator.trust(library, '.', env)).toContain('is not trusted: it lies inside');
  expect(existsSync(env.XDG_CONFIG_HOME)).toBe(false);
};

const fileLinkedIntoProject: Check = async (library) => {
  const operator = new Operator();
  const env = { XDG_CONFIG_HOME: operator.directory('config') };
  mkdirSync(join(operator.project, 'rondo'));
  symlinkSync(join(operator.project, 'rondo'), join(env.XDG_CONFIG_HOME, 'rondo'));
  expect(await operator.trust(library, '.', env)).toContain('is not trusted: it lies inside');
  expect(readdirSync(join(operator.project, 'rondo'))).toEqual([]);
};

const homeDirectory: Check = async (library) => {
  const operator = new Operator();
  for (const directory of ['/', operator.home, operator.root])
    expect(await operator.trust(library, directory)).toContain('contains your home directory');
  expect(existsSync(operator.file)).toBe(false);
};

const realPath: Check = async (library) => {
  const operator = new Operator();
  symlinkSync(operator.directory('real'), join(operator.project, 'link'));
  expect(await operator.trust(library, 'link')).toBe('');
  const { directories } = await library.loadTrustFile(operator.file);
  expect(directories).toEqual([join(operator.root, 'real')]);
};

const replacedByLink: Check = async (library) => {
  const operator = new Operator();
  const trusted = operator.directory('tools');
  expect(await operator.trust(library, trusted)).toBe('');
  rmdirSync(trusted);
  symlinkSync(operator.project, trusted);
  const { directories } = await library.loadTrustFile(operator.file);
  const trustedDirectories = directories.map((directory) => ({ directory, source: 'file' as const }));
  expect(library.trustPredicateOf({ directories: trustedDirectories })(operator.project)).toBe(false);
};

export const trustChecks = {
  'trust.toml and its directory are private to their user': privateFile,
  'a planted draft does not redirect trust.toml': plantedDraft,
  'a trust.toml that is a link stays a link, and its target is replaced': linkedFile,
  'a failed write of trust.toml leaves no draft': failedWrite,
  'a directory of any name is stored exactly': anyName,
  'trust.toml is not written into the project': fileInsideProject,
  'trust.toml is not written into the project through a link': fileLinkedIntoProject,
  'the home directory and the directories above it cannot be trusted': homeDirectory,
  'the real path of a directory is stored': realPath,
  'a stored directory that became a link is not trusted': replacedByLink,
} as const satisfies Record<string, Check>;
