// The operator whom hostile projects are aimed at: an environment with secrets, the built command line started in it, and a
// server that belongs to the attacker.

import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { createServer } from 'node:http';
import { fileURLToPath } from 'node:url';

export const bin = fileURLToPath(new URL('../../lib/surfaces/cli/main.js', import.meta.url));

/** Longer than any verb may take, the start of a process on a busy machine included. */
const LONGEST_MS = 40_000;
/** More output than this is not kept. */
const MOST_CHARS = 4_000_000;

/** Every value is unlike any text that Rondo or a project writes. */
export const SECRETS = {
  OPENAI_API_KEY: 'sk-operator-openai-7f3a9c1e5b',
  ANTHROPIC_API_KEY: 'sk-ant-operator-2d8e4b6a0c',
  GROQ_API_KEY: 'gsk-operator-51b7',
  AWS_SECRET_ACCESS_KEY: 'wJalrOperatorEXAMPLEKEY19d7',
  GITHUB_TOKEN: 'ghp_operator4c2b8e6f1a3d',
  MY_TOKEN: 'operator-token-91c7e5a3b2',
};
/** Stands in files of the operator's home. */
export const FILE_SECRET = 'operator-file-secret-5e1d9b7c';

/** The name of a secret that a text holds, as it is or encoded. @param {string} text */
export function leakIn(text) {
  const all = Object.entries({ ...SECRETS, 'a file of the home': FILE_SECRET });
  return all.find(([, value]) => {
    const bytes = Buffer.from(value);
    const forms = [value, encodeURIComponent(value), bytes.toString('base64').slice(0, -4), bytes.toString('hex')];
    return forms.some((form) => text.includes(form));
  })?.[0];
}

/** The operator's environment. @param {string} home */
export function environmentOf(home) {
  const { PATH = '' } = process.env;
  // Where a project names no address the operator's own is used: nothing listens there, and no request leaves this machine.
  const own = { OPENAI_BASE_URL: 'http://127.0.0.1:9/v1', ANTHROPIC_BASE_URL: 'http://127.0.0.1:9/v1' };
  return { PATH, HOME: home, LANG: 'C.UTF-8', NO_COLOR: '1', ...SECRETS, ...own };
}

/** @typedef {{ code: number | null, signal: string | null, stdout: string, stderr: string, late: boolean }} Ended */

/** Starts the command line; `late` tells whether it had to be killed. @param {readonly string[]} args @param {{ cwd: string, env: NodeJS.ProcessEnv, input: string }} options */
export function startRondo(args, { cwd, env, input }) {
  const child = spawn(process.execPath, [bin, ...args], { cwd, env, stdio: 'pipe', detached: true });
  const said = { stdout: '', stderr: '' };
  for (const name of /** @type {const} */ (['stdout', 'stderr'])) {
    child[name].setEncoding('utf8').on('data', (piece) => {
      if (said[name].length < MOST_CHARS) said[name] += piece;
    });
  }
  child.stdin.on('error', () => undefined);
  child.stdin.end(input);
  const kill = () => {
    try {
      process.kill(-(child.pid ?? 0), 'SIGKILL');
    } catch {}
  };
  let late = false;
  const timer = setTimeout(() => {
    late = true;
    kill();
  }, LONGEST_MS);
  /** @type {Promise<Ended>} */
  const ended = once(child, 'close').then(([code, signal]) => {
    clearTimeout(timer);
    return { code, signal, late, ...said };
  });
  return { child, ended, kill, said };
}

/** A server on this machine that keeps what arrives. @param {(request: import('node:http').IncomingMessage, response: import('node:http').ServerResponse) => void} [answer] */
export async function listen(answer) {
  const requests = /** @type {string[]} */ ([]);
  const server = createServer((request, response) => {
    const pieces = /** @type {Buffer[]} */ ([]);
    request.on('data', (piece) => pieces.push(piece));
    request.on('end', () => {
      const head = `${request.method} ${request.url} ${JSON.stringify(request.rawHeaders)}`;
      requests.push(`${head} ${Buffer.concat(pieces)}`);
      if (answer !== undefined) answer(request, response);
      else response.setHeader('content-type', 'application/json').end('{}');
    });
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const close = () => {
    server.closeAllConnections();
    server.close();
  };
  const { port } = /** @type {import('node:net').AddressInfo} */ (server.address());
  return { port, requests, close };
}
