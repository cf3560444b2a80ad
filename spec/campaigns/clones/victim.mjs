// The operator whom a hostile clone is aimed at: a home, an environment with secrets, and a record of everything that
// must not happen. Everything lies in one directory, so that a snapshot of it shows every file that changed.

import { spawn } from 'node:child_process';
import { createHash } from 'node:crypto';
import { once } from 'node:events';
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
import { createServer } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

const bin = fileURLToPath(new URL('../../../lib/surfaces/cli/main.js', import.meta.url));

/** Longer than any verb may take, the start of a process on a busy machine included. */
const LONGEST_MS = 30_000;

/** Every value is unlike any text that Rondo or a clone writes. */
export const SECRETS = {
  OPENAI_API_KEY: 'sk-victim-openai-7f3a9c1e5b',
  ANTHROPIC_API_KEY: 'sk-ant-victim-2d8e4b6a0c',
  AWS_SECRET_ACCESS_KEY: 'wJalrVictimEXAMPLEKEY19d7',
  GITHUB_TOKEN: 'ghp_victim4c2b8e6f1a3d',
  MY_TOKEN: 'victim-token-91c7e5a3b2',
};
const FILE_SECRET = 'victim-file-secret-5e1d9b7c';

/** Whether a text holds one of the operator's secrets, as it is or encoded. @param {string} text */
export function leakIn(text) {
  const all = Object.entries({ ...SECRETS, 'a file of the home': FILE_SECRET });
  return all.find(([, value]) => {
    const base64 = Buffer.from(value).toString('base64').slice(0, -4);
    return [value, base64, encodeURIComponent(value), Buffer.from(value).toString('hex')].some((form) =>
      text.includes(form),
    );
  })?.[0];
}

/** A server that belongs to the attacker: whatever arrives there is kept. */
class Listener {
  /** @type {string[]} */
  requests = [];
  port = 0;
  #server = createServer((request, response) => {
    /** @type {Buffer[]} */
    const pieces = [];
    request.on('data', (piece) => pieces.push(piece));
    request.on('end', () => {
      const head = `${request.method} ${request.url} ${JSON.stringify(request.rawHeaders)}`;
      this.requests.push(`${head} ${Buffer.concat(pieces)}`);
      response.setHeader('content-type', 'application/json').end('{}');
    });
  });

  async open() {
    this.#server.listen(0, '127.0.0.1');
    await once(this.#server, 'listening');
    this.port = /** @type {import('node:net').AddressInfo} */ (this.#server.address()).port;
  }

  close() {
    this.#server.closeAllConnections();
    this.#server.close();
  }
}

/** One operator with one clone. */
export class Victim {
  base = realpathSync(mkdtempSync(join(tmpdir(), 'clone-')));
  home = join(this.base, 'home');
  outside = join(this.base, 'outside');
  temporary = join(this.base, 'tmp');
  project = join(this.base, 'work', 'project');
  /** Hostile code writes its name here. */
  mark = join(this.base, 'executed');
  listener = new Listener();

  async open() {
    for (const folder of [this.home, this.outside, this.temporary, this.project])
      mkdirSync(folder, { recursive: true });
    mkdirSync(join(this.home, '.ssh'));
    writeFileSync(join(this.home, '.ssh', 'id_ed25519'), `${FILE_SECRET}\n`, { mode: 0o600 });
    writeFileSync(join(this.home, 'secret.json'), JSON.stringify([{ text: FILE_SECRET }]));
    writeFileSync(join(this.outside, 'precious.txt'), 'do not touch\n');
    await this.listener.open();
  }

  close() {
    this.listener.close();
    rmSync(this.base, { recursive: true, force: true });
  }

  /** The operator's environment. */
  get env() {
    const { PATH = '' } = process.env;
    return { PATH, HOME: this.home, TMPDIR: this.temporary, USER: 'victim', LANG: 'C.UTF-8', ...SECRETS };
  }

  /** What was executed, by the names that the code has left. */
  executed() {
    return existsSync(this.mark) ? readFileSync(this.mark, 'utf8').trim() : '';
  }

  /** Runs Rondo in the project. @param {readonly string[]} args @param {NodeJS.ProcessEnv} [env] */
  async rondo(args, env = this.env) {
    const child = spawn(process.execPath, [bin, ...args], { cwd: this.project, env, stdio: 'pipe', detached: true });
    child.stdin.on('error', () => undefined);
    child.stdin.end('hello\n');
    const said = { stdout: '', stderr: '' };
    for (const name of /** @type {const} */ (['stdout', 'stderr'])) {
      child[name].on('data', (piece) => {
        if (said[name].length < 1_000_000) said[name] += piece;
      });
    }
    let late = false;
    const timer = setTimeout(() => {
      late = true;
      process.kill(-(/** @type {number} */ (child.pid)), 'SIGKILL');
    }, LONGEST_MS);
    const [code] = await once(child, 'close');
    clearTimeout(timer);
    return { code: /** @type {number | null} */ (code), late, ...said };
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
