// The operator that hostile projects attack: an environment with secrets, the command line in it, and a server of the
// attacker.

import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { createServer } from 'node:http';
import { fileURLToPath } from 'node:url';

export const bin = fileURLToPath(new URL('../../lib/surfaces/cli/main.js', import.meta.url));

/** The time limit of a verb, including the start of the process on a busy machine. */
const TIMEOUT_MS = 40_000;
/** Output beyond this limit is discarded. */
const MAX_OUTPUT_CHARS = 4_000_000;

/** The secrets of the environment. No value resembles a text that Rondo or a project writes. */
export const SECRETS = {
  OPENAI_API_KEY: 'sk-operator-openai-7f3a9c1e5b',
  ANTHROPIC_API_KEY: 'sk-ant-operator-2d8e4b6a0c',
  GROQ_API_KEY: 'gsk-operator-51b7',
  AWS_SECRET_ACCESS_KEY: 'wJalrOperatorEXAMPLEKEY19d7',
  GITHUB_TOKEN: 'ghp_operator4c2b8e6f1a3d',
  MY_TOKEN: 'operator-token-91c7e5a3b2',
};
/** The secret in the files of the operator's home. */
export const FILE_SECRET = 'operator-file-secret-5e1d9b7c';

/** Returns the name of a secret that a text contains, plain or encoded. @param {string} text */
export function leakIn(text) {
  const secrets = Object.entries({ ...SECRETS, 'a file of the home': FILE_SECRET });
  return secrets.find(([, value]) => {
    const bytes = Buffer.from(value);
    const forms = [value, encodeURIComponent(value), bytes.toString('base64').slice(0, -4), bytes.toString('hex')];
    return forms.some((form) => text.includes(form));
  })?.[0];
}

/** Returns the operator's environment. @param {string} home */
export function environmentOf(home) {
  const { PATH = '' } = process.env;
  // The default address of a provider. Nothing listens there, so that no request leaves this machine.
  const providers = { OPENAI_BASE_URL: 'http://127.0.0.1:9/v1', ANTHROPIC_BASE_URL: 'http://127.0.0.1:9/v1' };
  return { PATH, HOME: home, LANG: 'C.UTF-8', NO_COLOR: '1', ...SECRETS, ...providers };
}

/** @typedef {{ code: number | null, signal: string | null, stdout: string, stderr: string, late: boolean }} Ended */

/**
 * Starts the command line. `late` is true if it was killed at the time limit.
 * @param {readonly string[]} args @param {{ cwd: string, env: NodeJS.ProcessEnv, input: string }} options
 */
export function startRondo(args, { cwd, env, input }) {
  const child = spawn(process.execPath, [bin, ...args], { cwd, env, stdio: 'pipe', detached: true });
  const output = { stdout: '', stderr: '' };
  for (const name of /** @type {const} */ (['stdout', 'stderr'])) {
    child[name].setEncoding('utf8').on('data', (chunk) => {
      if (output[name].length < MAX_OUTPUT_CHARS) output[name] += chunk;
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
  }, TIMEOUT_MS);
  /** @type {Promise<Ended>} */
  const ended = once(child, 'close').then(([code, signal]) => {
    clearTimeout(timer);
    return { code, signal, late, ...output };
  });
  return { child, ended, kill, output };
}

/**
 * Starts a local server that records its requests.
 * @param {(...args: Parameters<import('node:http').RequestListener>) => void} [answer]
 */
export async function listen(answer) {
  const requests = /** @type {string[]} */ ([]);
  const server = createServer((request, response) => {
    const chunks = /** @type {Buffer[]} */ ([]);
    request.on('data', (chunk) => chunks.push(chunk));
    request.on('end', () => {
      const head = `${request.method} ${request.url} ${JSON.stringify(request.rawHeaders)}`;
      requests.push(`${head} ${Buffer.concat(chunks)}`);
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
