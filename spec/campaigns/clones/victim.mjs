// The operator whom a hostile clone is aimed at: a home, an environment with secrets, and a record of everything that
// must not happen. Everything lies in one directory, so that a snapshot of it shows every file that changed.

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
  /** Hostile code writes its name here. */
  mark = join(this.base, 'executed');
  listener = { port: 0, requests: /** @type {string[]} */ ([]), close: () => {} };

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

  /** What was executed, by the names that the code has left. */
  executed() {
    return existsSync(this.mark) ? readFileSync(this.mark, 'utf8').trim() : '';
  }

  /** Runs Rondo in the project. @param {readonly string[]} args @param {NodeJS.ProcessEnv} [env] */
  rondo(args, env = this.env) {
    return startRondo(args, { cwd: this.project, env, input: 'hello\n' }).ended;
  }

  /** Every file but those of the data directory, with what tells whether it changed. @param {readonly string[]} except */
  snapshot(except) {
    /** @type {Map<string, string>} */
    const found = new Map();
    const walk = (/** @type {string} */ path) => {
      if (except.includes(path)) return;
      const status = lstatSync(path);
      const kind = status.isDirectory()
        ? 'directory'
        : status.isSymbolicLink()
          ? readlinkSync(path)
          : contentOf(path, status);
      found.set(path.slice(this.base.length), `${status.mode} ${kind}`);
      if (status.isDirectory()) for (const name of readdirSync(path)) walk(join(path, name));
    };
    walk(this.base);
    return found;
  }
}

/** @param {string} path @param {import('node:fs').Stats} status */
function contentOf(path, status) {
  if (!status.isFile()) return 'special';
  return `${status.size} ${status.mtimeMs} ${createHash('sha256').update(readFileSync(path)).digest('hex')}`;
}

/** What differs between two snapshots. @param {Map<string, string>} before @param {Map<string, string>} after */
export function changes(before, after) {
  const paths = new Set([...before.keys(), ...after.keys()]);
  return [...paths].filter((path) => before.get(path) !== after.get(path));
}
