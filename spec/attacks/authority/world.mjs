// One operator with a project, a home and secrets: runs the built command line, and keeps a record of what must not happen.

import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, mkdirSync, mkdtempSync, readFileSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { expect, randomOf, root } from '../stage.mjs';

export { Broken, expect, show, sleep, within } from '../stage.mjs';

export const bin = fileURLToPath(new URL('../../../lib/surfaces/cli/main.js', import.meta.url));
const library = (/** @type {string} */ path) => import(new URL(`../../../lib/${path}`, import.meta.url).href);
export const rondoLibrary = () => library('index.js');
export const toolsLibrary = () => library('protocol/tool.js');
export const toolboxLibrary = () => library('adapters/toolbox/index.js');
export const aiSdkLibrary = () => library('surfaces/ai-sdk/index.js');
export const sqliteLibrary = () => library('adapters/sqlite/index.js');
export const libraryUrl = new URL('../../../lib/index.js', import.meta.url).href;

const LONGEST_MS = 40_000;

/** Every value is unlike any text that a project writes. */
export const SECRETS = {
  OPENAI_API_KEY: 'sk-operator-openai-7f3a9c1e5b',
  ANTHROPIC_API_KEY: 'sk-ant-operator-2d8e4b6a0c',
  GROQ_API_KEY: 'gsk-operator-51b7',
  AWS_SECRET_ACCESS_KEY: 'wJalrOperatorEXAMPLEKEY19d7',
  MY_TOKEN: 'operator-token-91c7e5a3b2',
};

/** The name of a secret that stands in a text. @param {string} text */
export function leakIn(text) {
  return Object.entries(SECRETS).find(([, value]) =>
    [value, Buffer.from(value).toString('base64').slice(0, -4)].some((form) => text.includes(form)),
  )?.[0];
}

/** @typedef {{ code: number | null, signal: string | null, stdout: string, stderr: string, late: boolean }} Ended */
/** @typedef {{ trust?: boolean | string, env?: Record<string, string | undefined>, cwd?: string, input?: string }} Setting */

const any = { inputSchema: { type: 'object' }, outputSchema: true };

export class World {
  listener = { port: 0, requests: /** @type {string[]} */ ([]) };
  #ends = /** @type {(() => unknown)[]} */ ([]);

  /** @param {number} seed @param {string} id */
  constructor(seed, id) {
    this.random = randomOf(seed, id);
    this.base = mkdtempSync(join(root, 'a'));
    this.home = join(this.base, 'home');
    this.project = join(this.base, 'work', 'project');
    this.outside = join(this.base, 'outside');
    this.mark = join(this.base, 'executed');
    for (const folder of [this.home, join(this.project, 'loops'), this.outside]) mkdirSync(folder, { recursive: true });
  }

  /** @param {() => unknown} end */
  atEnd(end) {
    this.#ends.push(end);
  }

  async end() {
    for (const end of this.#ends.reverse()) await end();
  }

  /** A path in the project. @param {string} name */
  path(name) {
    return join(this.project, name);
  }

  /** Writes a file; a relative name is one of the project. @param {string} name @param {unknown} content @param {number} [mode] */
  write(name, content, mode = 0o644) {
    const path = name.startsWith('/') ? name : this.path(name);
    mkdirSync(dirname(path), { recursive: true });
    writeFileSync(path, typeof content === 'string' ? content : JSON.stringify(content, null, 1), { mode });
    return path;
  }

  /** A definition in a file of its own. @param {string} id @param {object} more @param {string} [file] */
  define(id, more, file = `loops/${id.replaceAll('/', '-')}.json`) {
    const definition = { id, name: id, version: '1.0.0', kind: 'tool', ...any, ...more };
    return this.write(file, definition);
  }

  /** An agent with a script of replies. @param {string} id @param {object} agent @param {readonly object[]} replies */
  agent(id, agent, replies) {
    this.write(`loops/${id}.script.json`, replies);
    const composite = { agent: { backend: { id: 'scripted', model: `${id}.script.json` }, tools: [], ...agent } };
    return this.define(id, { kind: 'composite', composite });
  }

  /** The text of a program that leaves a letter. @param {string} letter */
  shell(letter) {
    return `#!/bin/sh\necho ${letter} >> '${this.mark}'\necho '{"ran":"${letter}"}'\n`;
  }

  /** The text of a module that leaves a letter when it is loaded, and when it is called. @param {string} letter */
  module(letter) {
    const leave = (/** @type {string} */ what) => `appendFileSync(${JSON.stringify(this.mark)}, '${what}\\n');`;
    return `import { appendFileSync } from 'node:fs';\n${leave(`loaded ${letter}`)}\nexport const run = () => { ${leave(letter)} return { ran: '${letter}' }; };\n`;
  }

  /** What programs have left, line by line. */
  executed() {
    return existsSync(this.mark) ? readFileSync(this.mark, 'utf8').split('\n').filter(Boolean) : [];
  }

  /** How often a letter was left. @param {string} letter */
  count(letter) {
    return this.executed().filter((line) => line === letter).length;
  }

  /** Nothing of this was executed. @param {string} [what] */
  expectNothing(what = 'nothing of the project to be executed') {
    expect(this.executed().length === 0, what, this.executed());
  }

  /** The operator's environment. @param {boolean | string} trust @returns {Record<string, string>} */
  env(trust = false) {
    const { PATH = '' } = process.env;
    const trusted = trust === false ? {} : { RONDO_TRUST: trust === true ? this.project : trust };
    // Where a file names no address the operator's own is used: nothing listens there, and no request leaves this machine.
    const own = { OPENAI_BASE_URL: 'http://127.0.0.1:9/v1', ANTHROPIC_BASE_URL: 'http://127.0.0.1:9/v1' };
    return { PATH, HOME: this.home, LANG: 'C.UTF-8', NO_COLOR: '1', ...SECRETS, ...own, ...trusted };
  }

  /** Starts the command line. @param {readonly string[]} args @param {Setting} [setting] */
  start(args, { trust = false, env = {}, cwd = this.project, input = '' } = {}) {
    const all = Object.fromEntries(Object.entries({ ...this.env(trust), ...env }).filter(([, value]) => value != null));
    const child = spawn(process.execPath, [bin, ...args], { cwd, env: all, stdio: 'pipe', detached: true });
    const said = { stdout: '', stderr: '' };
    for (const name of /** @type {const} */ (['stdout', 'stderr'])) {
      child[name].setEncoding('utf8').on('data', (piece) => {
        if (said[name].length < 4_000_000) said[name] += piece;
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
    this.atEnd(kill);
    /** @type {Promise<Ended>} */
    const ended = once(child, 'close').then(([code, signal]) => {
      clearTimeout(timer);
      return { code, signal, late, ...said };
    });
    return { child, ended, kill, said };
  }

  /** Runs a verb to its end. @param {readonly string[]} args @param {Setting} [setting] */
  async rondo(args, setting) {
    const ended = await this.start(args, setting).ended;
    expect(!ended.late, `${args[0]} to end`, 'it was still running');
    return ended;
  }

  /** Runs a verb and reads its document. @param {readonly string[]} args @param {Setting} [setting] @returns {Promise<any>} */
  async json(args, setting) {
    const { stdout, stderr } = await this.rondo([...args, '--json'], setting);
    try {
      return JSON.parse(stdout);
    } catch {
      return expect(false, `${args.join(' ')} to print one document`, `${stdout} ${stderr}`);
    }
  }

  /** Runs a loop that must wait for approval; the ids of what waits. @param {string} loop @param {Setting & { args?: readonly string[], given?: unknown }} [setting] */
  async ask(loop, { args = [], given = {}, ...setting } = {}) {
    const input = ['--input', JSON.stringify(given)];
    const result = await this.json(['run', loop, ...input, ...args], { trust: true, ...setting });
    expect(result.status === 'paused', `${loop} to wait for approval`, result.error ?? result);
    const ids = result.pending.filter(({ kind }) => kind === 'approval').map(({ id }) => id);
    expect(ids.length > 0, `${loop} to wait for approval`, result.pending);
    return { turnId: result.turnId, sessionId: result.sessionId, ids, id: ids[0] };
  }

  /** A server on this machine that keeps what arrives. @param {(request: import('node:http').IncomingMessage, response: import('node:http').ServerResponse) => void} [answer] */
  async listen(answer) {
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
    this.atEnd(() => {
      server.closeAllConnections();
      server.close();
    });
    const { port } = /** @type {import('node:net').AddressInfo} */ (server.address());
    this.listener = { port, requests };
    return this.listener;
  }
}

/** A host of the library, with a clock that can be moved. @param {object} [options] */
export async function hostOf(options = {}) {
  const rondo = await rondoLibrary();
  const clock = { ...rondo.systemClock, now: () => rondo.systemClock.now() + clock.ahead, ahead: 0 };
  const backends = new Map([
    ['scripted', rondo.scriptedBackend()],
    ['mock', rondo.mockBackend()],
  ]);
  const kinds = [rondo.builtinTools(), rondo.execTools(), rondo.moduleTools()];
  const implementations = new Map(kinds.map((one) => [one.scheme, one]));
  const registry = new rondo.Registry(implementations);
  const store = options.store ?? rondo.memoryStore();
  const parts = { store, clock, ids: rondo.systemIds, registry, backends, implementations, trusts: () => true };
  const host = new rondo.Host({ ...parts, ...options });
  return { host, registry, clock, store, rondo };
}

/** An agent that calls its only tool with what it is given, as JSON. @param {any} tool @param {object} [more] */
export async function handOf(tool, more = {}) {
  const { defineAgent } = await rondoLibrary();
  const calls = (/** @type {any} */ input) => [
    { type: 'tool-call', toolCallId: 'c', toolName: tool.name, input: JSON.stringify(input) },
  ];
  const usage = { inputTokens: { total: 1 }, outputTokens: { total: 1 } };
  const answerTo = (/** @type {any[]} */ prompt) => {
    const said = prompt.at(-1);
    const isUser = said.role === 'user';
    const content = isUser ? calls(JSON.parse(said.content[0].text)) : [{ type: 'text', text: 'done' }];
    const reason = isUser ? 'tool-calls' : 'stop';
    return { content, finishReason: { unified: reason, raw: reason } };
  };
  const model = {
    specificationVersion: 'v3',
    provider: 'p',
    modelId: 'm',
    supportedUrls: {},
    doGenerate: async (/** @type {any} */ { prompt }) => ({ ...answerTo(prompt), usage, warnings: [] }),
    doStream: async (/** @type {any} */ { prompt }) => {
      const { content, finishReason } = answerTo(prompt);
      const [piece] = content;
      const text = { type: 'text-delta', id: '1', delta: piece.text };
      const parts = [piece.type === 'text' ? text : piece, { type: 'finish', finishReason, usage }];
      return { stream: ReadableStream.from(parts) };
    },
  };
  return defineAgent({ id: 'hand', model, tools: [tool], input: true, ...more });
}

/** The code and message that a promise rejects with. @param {Promise<unknown>} work @returns {Promise<{ code?: string, message?: string, ok?: unknown }>} */
export async function outcome(work) {
  try {
    return { ok: await work };
  } catch (thrown) {
    const { code, message } = /** @type {{ code?: string, message?: string }} */ (thrown);
    return { code: code ?? /** @type {Error} */ (thrown).constructor.name, message: `${message}` };
  }
}
