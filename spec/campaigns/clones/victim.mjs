// The operator that a hostile clone attacks: a home, an environment with secrets, and the attacker's server. All files
// are in one directory, so that snapshots of it show every changed file.

import { createHash } from 'node:crypto';
import {
  existsSync,
  lstatSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  realpathSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { environmentOf, FILE_SECRET, listen, startRondo } from '../../support/operator.mjs';

/** One operator with one clone. */
export class Victim {
  base = realpathSync(mkdtempSync(join(tmpdir(), 'clone-')));
  home = join(this.base, 'home');
  outside = join(this.base, 'outside');
  temporary = join(this.base, 'tmp');
  project = join(this.base, 'work', 'project');
  /** The file to which hostile code writes its name. */
  executionLog = join(this.base, 'executed');
  listener = { port: 0, requests: /** @type {string[]} */ ([]), close: () => {} };

  /** Creates the directories and starts the attacker's server. */
  async open() {
    for (const folder of [this.home, this.outside, this.temporary, this.project])
      mkdirSync(folder, { recursive: true });
    mkdirSync(join(this.home, '.ssh'));
    writeFileSync(join(this.home, '.ssh', 'id_ed25519'), `${FILE_SECRET}\n`, { mode: 0o600 });
    writeFileSync(join(this.home, 'secret.json'), JSON.stringify([{ text: FILE_SECRET }]));
    writeFileSync(join(this.outside, 'precious.txt'), 'do not touch\n');
    this.listener = await listen();
  }

  close() {
    this.listener.close();
    rmSync(this.base, { recursive: true, force: true });
  }

  /** The operator's environment. */
  get env() {
    return { ...environmentOf(this.home), TMPDIR: this.temporary, USER: 'victim' };
  }

  /** Returns the names of the hostile code that ran, or an empty string. */
  executed() {
    return existsSync(this.executionLog) ? readFileSync(this.executionLog, 'utf8').trim() : '';
  }

  /** Runs Rondo in the project. @param {readonly string[]} args @param {NodeJS.ProcessEnv} [env] */
  rondo(args, env = this.env) {
    return startRondo(args, { cwd: this.project, env, input: 'hello\n' }).ended;
  }

  /**
   * Returns the mode and content of every file outside of the excluded directories.
   * @param {readonly string[]} excluded
   */
  snapshot(excluded) {
    /** @type {Map<string, string>} */
    const files = new Map();
    const walk = (/** @type {string} */ path) => {
      if (excluded.includes(path)) return;
      const status = lstatSync(path);
      const kind = status.isDirectory()
        ? 'directory'
        : status.isSymbolicLink()
          ? readlinkSync(path)
          : contentOf(path, status);
      files.set(path.slice(this.base.length), `${status.mode} ${kind}`);
      if (status.isDirectory()) for (const name of readdirSync(path)) walk(join(path, name));
    };
    walk(this.base);
    return files;
  }
}

/**
 * Returns the size, modification time and digest of a file.
 * @param {string} path @param {import('node:fs').Stats} status
 */
function contentOf(path, status) {
  if (!status.isFile()) return 'special';
  return `${status.size} ${status.mtimeMs} ${createHash('sha256').update(readFileSync(path)).digest('hex')}`;
}

/**
 * Returns the paths that differ between two snapshots.
 * @param {Map<string, string>} before @param {Map<string, string>} after
 */
export function changes(before, after) {
  const paths = new Set([...before.keys(), ...after.keys()]);
  return [...paths].filter((path) => before.get(path) !== after.get(path));
}
