// What one case has: a directory, a project for the command line, a process that uses the toolbox, and a server on this machine.

import { spawn } from 'node:child_process';
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import { dirname, join } from 'node:path';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import { expect, randomOf, root, within } from '../../support/store-attack.mjs';

export const bin = fileURLToPath(new URL('../../../lib/surfaces/cli/main.js', import.meta.url));
const program = fileURLToPath(new URL('host.mjs', import.meta.url));

/** @typedef {{ code: number | null, signal: string | null, stdout: string, stderr: string }} Ran */

/** Runs a program to its end. @returns {Promise<Ran>} */
export function ran(file, args, { cwd, env, input = '', ms = 60_000 }) {
  return new Promise((resolve, reject) => {
    const child = spawn(file, args, { cwd, env, stdio: ['pipe', 'pipe', 'pipe'] });
    const pieces = { stdout: [], stderr: [] };
    for (const name of ['stdout', 'stderr']) child[name].on('data', (piece) => pieces[name].push(piece));
    child.stdin.on('error', () => undefined);
    child.stdin.end(input);
    const late = setTimeout(() => child.kill('SIGKILL'), ms);
    child.once('error', reject);
    child.once('close', (code, signal) => {
      clearTimeout(late);
      const [stdout, stderr] = [pieces.stdout, pieces.stderr].map((all) => Buffer.concat(all).toString());
      resolve({ code, signal, stdout, stderr });
    });
  });
}

/** A process that opens stores and uses the toolbox, one JSON line a command. */
class HostProcess {
  stderr = '';
  ended = false;
  #count = 0;
  #waiting = new Map();

  constructor({ env = {}, as = [], cwd } = {}) {
    const [file, ...args] = [...as, process.execPath, program];
    this.child = spawn(file, args, { stdio: ['pipe', 'pipe', 'pipe'], env: { ...process.env, ...env }, cwd });
    this.child.stdin.on('error', () => undefined);
    this.child.stderr.on('data', (piece) => {
      this.stderr = (this.stderr + piece).slice(-4000);
    });
    createInterface({ input: this.child.stdout }).on('line', (line) => {
      const report = JSON.parse(line);
      if (report.ready !== undefined) this.pid = report.ready;
      this.#waiting.get(report.n)?.(report);
      this.#waiting.delete(report.n);
    });
    this.closed = new Promise((resolve) => {
      this.child.once('close', (code, signal) => {
        this.ended = true;
        for (const answer of this.#waiting.values()) answer({ gone: `code ${code}, signal ${signal}, ${this.stderr}` });
        resolve(undefined);
      });
    });
  }

  /** @returns {Promise<any>} */
  async do(what, args = {}, ms = 60_000) {
    const n = ++this.#count;
    const answer = new Promise((resolve) => this.#waiting.set(n, resolve));
    this.child.stdin.write(`${JSON.stringify({ ...args, n, do: what })}\n`);
    return within(answer, ms, `an answer to ${what}`);
  }

  async must(what, args = {}, ms = 60_000) {
    const answer = await this.do(what, args, ms);
    expect('ok' in answer, `${what} to succeed`, answer);
    return answer.ok;
  }

  /** Uses a tool; a refusal is `{ fault }`. */
  tool(name, input, { roots, commands = {} }) {
    return this.do('tool', { name, input, options: { roots, commands } });
  }

  /** Runs a command line in the sandbox, which must be there. */
  async command(command, { roots, commands = {}, input = {} }) {
    const answer = await this.do('tool', {
      name: 'run_command',
      input: { command, ...input },
      options: { roots, commands },
    });
    expect(!('gone' in answer), 'the process that runs the command to go on', answer);
    return answer;
  }
}

export class Scene {
  #ends = [];
  #hosts = [];

  constructor(seed, id) {
    this.random = randomOf(seed, id);
    this.folder = mkdtempSync(join(root, 'c'));
    this.place = join(this.folder, 'p');
    this.env = {
      PATH: process.env.PATH,
      HOME: join(this.folder, 'home'),
      LANG: 'C.UTF-8',
      NO_COLOR: '1',
      RONDO_TRUST: this.place,
    };
    mkdirSync(join(this.place, 'loops'), { recursive: true });
    mkdirSync(this.env.HOME);
  }

  /** Puts a file below the directory of the case. */
  file(path, content) {
    const full = join(this.folder, path);
    mkdirSync(dirname(full), { recursive: true });
    writeFileSync(full, typeof content === 'object' && !Buffer.isBuffer(content) ? JSON.stringify(content) : content);
    return full;
  }

  /** Puts a definition of a tool into the project. */
  toolLoop(id, implementation, config, extra = {}) {
    this.file(`p/loops/${id}.json`, {
      ...{ id, name: id, version: '1.0.0', kind: 'tool', inputSchema: {}, outputSchema: {} },
      tool: { implementation, ...(config === undefined ? {} : { config }), safety: 'pure' },
      ...extra,
    });
  }

  /** Puts an agent with a script into the project. */
  agent(id, tools, script, extra = {}) {
    this.file(`p/loops/${id}.script.json`, script);
    const agent = { backend: { id: 'scripted', model: `${id}.script.json` }, tools, mode: 'unsupervised', ...extra };
    const schema = { type: 'object' };
    this.file(`p/loops/${id}.json`, {
      ...{ id, name: id, version: '1.0.0', kind: 'composite', inputSchema: schema, outputSchema: schema },
      composite: { agent },
    });
  }

  /** The command line. */
  cli(args, { env = {}, input, ms } = {}) {
    return ran(process.execPath, [bin, ...args], { cwd: this.place, env: { ...this.env, ...env }, input, ms });
  }

  /** A line of a shell in which `rondo` is the command line. */
  shell(line, { env = {}, input, ms } = {}) {
    const all = { ...this.env, ...env, NODE: process.execPath, BIN: bin };
    const text = `rondo() { "$NODE" "$BIN" "$@"; }\n${line}`;
    return ran('bash', ['-c', text], { cwd: this.place, env: all, input, ms });
  }

  async host(options = {}) {
    const host = new HostProcess(options);
    this.#hosts.push(host);
    await host.must('ping', {}, 20_000);
    return host;
  }

  /** A server on 127.0.0.1; the handler gets the request, its body and the response. */
  async server(handler) {
    const server = createServer((request, response) => {
      const pieces = [];
      request.on('data', (piece) => pieces.push(piece));
      request.on('end', () => handler(request, Buffer.concat(pieces).toString(), response));
    });
    await new Promise((resolve) => server.listen(0, '127.0.0.1', () => resolve(undefined)));
    this.atEnd(() => {
      server.closeAllConnections();
      server.close();
    });
    return `http://127.0.0.1:${server.address().port}`;
  }

  /** @param {() => unknown} end */
  atEnd(end) {
    this.#ends.push(end);
  }

  async end() {
    for (const host of this.#hosts) {
      if (!host.ended) host.child.kill('SIGKILL');
      await host.closed;
    }
    for (const end of this.#ends.reverse()) await end();
    rmSync(this.folder, { recursive: true, force: true });
  }
}

/** The bytes of all files below a directory, as Latin-1. */
export function bytesBelow(directory) {
  const all = [];
  for (const entry of readdirSync(directory, { withFileTypes: true, recursive: true })) {
    if (entry.isFile()) all.push(readFileSync(join(entry.parentPath ?? entry.path, entry.name), 'latin1'));
  }
  return all.join('\n');
}
