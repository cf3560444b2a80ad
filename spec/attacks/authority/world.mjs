// One operator with a project, a home and secrets: runs the built command line, and keeps a record of what must not happen.

import { existsSync, mkdirSync, mkdtempSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { environmentOf, listen, startRondo } from '../../support/operator.mjs';
import { expect, randomOf, root } from '../../support/store-attack.mjs';

export { bin, leakIn, SECRETS } from '../../support/operator.mjs';
export { Broken, expect, show, sleep, within } from '../../support/store-attack.mjs';

const library = (/** @type {string} */ path) => import(new URL(`../../../lib/${path}`, import.meta.url).href);
export const rondoLibrary = () => library('index.js');
export const toolsLibrary = () => library('protocol/tool.js');
export const toolboxLibrary = () => library('adapters/toolbox/index.js');
export const aiSdkLibrary = () => library('surfaces/ai-sdk/index.js');
export const sqliteLibrary = () => library('adapters/sqlite/index.js');
export const libraryUrl = new URL('../../../lib/index.js', import.meta.url).href;

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
    const trusted = trust === false ? {} : { RONDO_TRUST: trust === true ? this.project : trust };
    return { ...environmentOf(this.home), ...trusted };
  }

  /** Starts the command line. @param {readonly string[]} args @param {Setting} [setting] */
  start(args, { trust = false, env = {}, cwd = this.project, input = '' } = {}) {
    const all = Object.fromEntries(Object.entries({ ...this.env(trust), ...env }).filter(([, value]) => value != null));
    const started = startRondo(args, { cwd, env: all, input });
    this.atEnd(started.kill);
    return started;
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
    const listener = await listen(answer);
    this.atEnd(listener.close);
    this.listener = listener;
    return listener;
  }
}

/** A host of the library, with a clock that can be moved. @param {object} [options] */
export async function hostOf(options = {}) {
  const rondo = await rondoLibrary();
  const clock = { ...rondo.systemClock, now: () => rondo.systemClock.now() + clock.ahead, ahead: 0 };
  const providers = new Map([
    ['scripted', rondo.scriptedProvider()],
    ['mock', rondo.mockProvider()],
  ]);
  const kinds = [rondo.builtinTools(), rondo.execTools(), rondo.moduleTools()];
  const implementations = new Map(kinds.map((one) => [one.scheme, one]));
  const registry = new rondo.Registry(implementations);
  const store = options.store ?? rondo.memoryStore();
  const parts = { store, clock, ids: rondo.systemIds, registry, providers, implementations, trusts: () => true };
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
