// The fixture of a case: a temporary directory with a project for the command line, processes that use the toolbox, and
// local HTTP servers.

import { spawn } from 'node:child_process';
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import { dirname, join } from 'node:path';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import { expect, randomOf, root, within } from '../../support/store-attack.mjs';

export const bin = fileURLToPath(new URL('../../../lib/surfaces/cli/main.js', import.meta.url));
const hostProgram = fileURLToPath(new URL('host-process.mjs', import.meta.url));

/** @typedef {{ code: number | null, signal: string | null, stdout: string, stderr: string }} ProgramResult */

/** Runs a program until it exits, and kills it after `ms` milliseconds. @returns {Promise<ProgramResult>} */
export function runProgram(file, args, { cwd, env, input = '', ms = 60_000 }) {
  return new Promise((resolve, reject) => {
    const child = spawn(file, args, { cwd, env, stdio: ['pipe', 'pipe', 'pipe'] });
    const chunks = { stdout: [], stderr: [] };
    for (const name of ['stdout', 'stderr']) child[name].on('data', (chunk) => chunks[name].push(chunk));
    child.stdin.on('error', () => undefined);
    child.stdin.end(input);
    const killTimer = setTimeout(() => child.kill('SIGKILL'), ms);
    child.once('error', reject);
    child.once('close', (code, signal) => {
      clearTimeout(killTimer);
      const [stdout, stderr] = [chunks.stdout, chunks.stderr].map((parts) => Buffer.concat(parts).toString());
      resolve({ code, signal, stdout, stderr });
    });
  });
}

/** A process that runs `host-process.mjs`. Each request and each response is one line of JSON. */
class HostProcess {
  stderr = '';
  ended = false;
  #requestCount = 0;
  #pending = new Map();

  constructor({ env = {}, as = [], cwd } = {}) {
    const [file, ...args] = [...as, process.execPath, hostProgram];
    this.child = spawn(file, args, { stdio: ['pipe', 'pipe', 'pipe'], env: { ...process.env, ...env }, cwd });
    this.child.stdin.on('error', () => undefined);
    this.child.stderr.on('data', (chunk) => {
      this.stderr = (this.stderr + chunk).slice(-4000);
    });
    createInterface({ input: this.child.stdout }).on('line', (line) => {
      const response = JSON.parse(line);
      if (response.ready !== undefined) this.pid = response.ready;
      this.#pending.get(response.n)?.(response);
      this.#pending.delete(response.n);
    });
    this.closed = new Promise((resolve) => {
      this.child.once('close', (code, signal) => {
        this.ended = true;
        const exited = `code ${code}, signal ${signal}, ${this.stderr}`;
        for (const resolvePending of this.#pending.values()) resolvePending({ exited });
        resolve(undefined);
      });
    });
  }

  /**
   * Sends a command. Resolves with `{ ok }`, `{ fault }`, or `{ exited }` if the process ends first.
   * @returns {Promise<any>}
   */
  async do(command, args = {}, ms = 60_000) {
    const n = ++this.#requestCount;
    const response = new Promise((resolve) => this.#pending.set(n, resolve));
    this.child.stdin.write(`${JSON.stringify({ ...args, n, do: command })}\n`);
    return within(response, ms, `a response to ${command}`);
  }

  /** Sends a command that must succeed, and returns its result. */
  async must(command, args = {}, ms = 60_000) {
    const response = await this.do(command, args, ms);
    expect('ok' in response, `${command} to succeed`, response);
    return response.ok;
  }

  /** Calls a tool. A refused call resolves with `{ fault }`. */
  tool(name, input, { roots, commands = {} }) {
    return this.do('tool', { name, input, options: { roots, commands } });
  }

  /** Runs a command line with `run_command`. The host process must not exit. */
  async command(command, { roots, commands = {}, input = {} }) {
    const response = await this.do('tool', {
      name: 'run_command',
      input: { command, ...input },
      options: { roots, commands },
    });
    expect(!('exited' in response), 'the host process to keep running', response);
    return response;
  }
}

/** The directory, project and processes of one case. */
export class ConfinementFixture {
  #cleanups = [];
  #hosts = [];

  constructor(seed, id) {
    this.random = randomOf(seed, id);
    this.folder = mkdtempSync(join(root, 'c'));
    this.project = join(this.folder, 'p');
    this.env = {
      PATH: process.env.PATH,
      HOME: join(this.folder, 'home'),
      LANG: 'C.UTF-8',
      NO_COLOR: '1',
      RONDO_TRUST: this.project,
    };
    mkdirSync(join(this.project, 'loops'), { recursive: true });
    mkdirSync(this.env.HOME);
  }

  /** Writes a file below the directory of the case and returns its path. Plain objects are written as JSON. */
  file(path, content) {
    const full = join(this.folder, path);
    mkdirSync(dirname(full), { recursive: true });
    writeFileSync(full, typeof content === 'object' && !Buffer.isBuffer(content) ? JSON.stringify(content) : content);
    return full;
  }

  /** Writes the definition of a tool into the project. */
  toolLoop(id, implementation, config, extra = {}) {
    this.file(`p/loops/${id}.json`, {
      ...{ id, name: id, version: '1.0.0', kind: 'tool', inputSchema: {}, outputSchema: {} },
      tool: { implementation, ...(config === undefined ? {} : { config }), safety: 'pure' },
      ...extra,
    });
  }

  /** Writes the definition of an agent with scripted replies into the project. */
  agent(id, tools, script, extra = {}) {
    this.file(`p/loops/${id}.script.json`, script);
    const agent = { backend: { id: 'scripted', model: `${id}.script.json` }, tools, mode: 'unsupervised', ...extra };
    const schema = { type: 'object' };
    this.file(`p/loops/${id}.json`, {
      ...{ id, name: id, version: '1.0.0', kind: 'composite', inputSchema: schema, outputSchema: schema },
      composite: { agent },
    });
  }

  /** Runs the command line in the project. */
  cli(args, { env = {}, input, ms } = {}) {
    return runProgram(process.execPath, [bin, ...args], { cwd: this.project, env: { ...this.env, ...env }, input, ms });
  }

  /** Runs a line of shell script in the project. `rondo` is a shell function that runs the command line. */
  shell(line, { env = {}, input, ms } = {}) {
    const shellEnv = { ...this.env, ...env, NODE: process.execPath, BIN: bin };
    const text = `rondo() { "$NODE" "$BIN" "$@"; }\n${line}`;
    return runProgram('bash', ['-c', text], { cwd: this.project, env: shellEnv, input, ms });
  }

  /** Starts a host process and waits until it responds. */
  async host(options = {}) {
    const host = new HostProcess(options);
    this.#hosts.push(host);
    await host.must('ping', {}, 20_000);
    return host;
  }

  /**
   * Starts an HTTP server on 127.0.0.1 and returns its URL. The handler gets the request, its body and the response.
   */
  async server(handler) {
    const server = createServer((request, response) => {
      const chunks = [];
      request.on('data', (chunk) => chunks.push(chunk));
      request.on('end', () => handler(request, Buffer.concat(chunks).toString(), response));
    });
    await new Promise((resolve) => server.listen(0, '127.0.0.1', () => resolve(undefined)));
    this.atEnd(() => {
      server.closeAllConnections();
      server.close();
    });
    return `http://127.0.0.1:${server.address().port}`;
  }

  /** Registers a cleanup function. Cleanups run in reverse order. @param {() => unknown} cleanup */
  atEnd(cleanup) {
    this.#cleanups.push(cleanup);
  }

  /** Kills the processes of the case, runs its cleanups and removes its directory. */
  async end() {
    for (const host of this.#hosts) {
      if (!host.ended) host.child.kill('SIGKILL');
      await host.closed;
    }
    for (const cleanup of this.#cleanups.reverse()) await cleanup();
    rmSync(this.folder, { recursive: true, force: true });
  }
}

/** Returns the contents of all files below a directory, decoded as Latin-1. */
export function bytesBelow(directory) {
  const contents = [];
  for (const entry of readdirSync(directory, { withFileTypes: true, recursive: true })) {
    if (entry.isFile()) contents.push(readFileSync(join(entry.parentPath ?? entry.path, entry.name), 'latin1'));
  }
  return contents.join('\n');
}
