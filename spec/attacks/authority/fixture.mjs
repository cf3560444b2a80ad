// The fixture of an authority case: an operator with a project, a home directory and secrets. It runs the built command
// line and logs which programs of the project were executed.

import { existsSync, mkdirSync, mkdtempSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { environmentOf, listen, startRondo } from '../../support/operator.mjs';
import { expect, randomOf, root } from '../../support/store-attack.mjs';

export { bin, leakIn, SECRETS } from '../../support/operator.mjs';
export { ExpectationError, expect, show, sleep, within } from '../../support/store-attack.mjs';

const library = (/** @type {string} */ path) => import(new URL(`../../../lib/${path}`, import.meta.url).href);
export const rondoLibrary = async () => ({ ...(await library('index.js')), ...(await library('host-entry.js')) });
export const toolsLibrary = () => library('protocol/tool.js');
export const toolboxLibrary = () => library('adapters/toolbox/index.js');
export const aiSdkLibrary = () => library('surfaces/ai-sdk/index.js');
export const sqliteLibrary = () => library('adapters/sqlite/index.js');
export const libraryUrl = new URL('../../../lib/index.js', import.meta.url).href;

/**
 * @typedef {object} Setting
 * @property {boolean | string} [trust] true to trust the project, or the value of RONDO_TRUST
 * @property {Record<string, string | undefined>} [env]
 * @property {string} [cwd]
 * @property {string} [input] the content of stdin
 */

const ANY_SCHEMAS = { inputSchema: { type: 'object' }, outputSchema: true };

/** The directories and processes of one case. */
export class AuthorityFixture {
  listener = { port: 0, requests: /** @type {string[]} */ ([]) };
  #cleanups = /** @type {(() => unknown)[]} */ ([]);

  /** @param {number} seed @param {string} id */
  constructor(seed, id) {
    this.random = randomOf(seed, id);
    this.base = mkdtempSync(join(root, 'a'));
    this.home = join(this.base, 'home');
    this.project = join(this.base, 'work', 'project');
    this.outside = join(this.base, 'outside');
    this.executionLog = join(this.base, 'executed');
    for (const folder of [this.home, join(this.project, 'loops'), this.outside]) mkdirSync(folder, { recursive: true });
  }

  /** Registers a cleanup. @param {() => unknown} cleanup */
  atEnd(cleanup) {
    this.#cleanups.push(cleanup);
  }

  async end() {
    for (const cleanup of this.#cleanups.reverse()) await cleanup();
  }

  /** Returns a path in the project. @param {string} name */
  path(name) {
    return join(this.project, name);
  }

  /**
   * Writes a file; a relative path is resolved in the project.
   * @param {string} name
   * @param {unknown} content
   * @param {number} [mode]
   */
  write(name, content, mode = 0o644) {
    const path = name.startsWith('/') ? name : this.path(name);
    mkdirSync(dirname(path), { recursive: true });
    writeFileSync(path, typeof content === 'string' ? content : JSON.stringify(content, null, 1), { mode });
    return path;
  }

  /** Writes a definition file. @param {string} id @param {object} more @param {string} [file] */
  define(id, more, file = `loops/${id.replaceAll('/', '-')}.json`) {
    const definition = { id, name: id, version: '1.0.0', kind: 'tool', ...ANY_SCHEMAS, ...more };
    return this.write(file, definition);
  }

  /**
   * Writes an agent whose scripted model gives these replies.
   * @param {string} id
   * @param {object} agent
   * @param {readonly object[]} replies
   */
  agent(id, agent, replies) {
    this.write(`loops/${id}.script.json`, replies);
    const composite = { agent: { backend: { id: 'scripted', model: `${id}.script.json` }, tools: [], ...agent } };
    return this.define(id, { kind: 'composite', composite });
  }

  /** Returns a shell program that appends a letter to the log of executions. @param {string} letter */
  shell(letter) {
    return `#!/bin/sh\necho ${letter} >> '${this.executionLog}'\necho '{"ran":"${letter}"}'\n`;
  }

  /** Returns a module that logs a letter when it is loaded and when it is called. @param {string} letter */
  module(letter) {
    const log = (/** @type {string} */ line) => `appendFileSync(${JSON.stringify(this.executionLog)}, '${line}\\n');`;
    return `import { appendFileSync } from 'node:fs';\n${log(`loaded ${letter}`)}\nexport const run = () => { ${log(letter)} return { ran: '${letter}' }; };\n`;
  }

  /** Returns the lines of the log of executions. */
  executed() {
    return existsSync(this.executionLog) ? readFileSync(this.executionLog, 'utf8').split('\n').filter(Boolean) : [];
  }

  /** Returns how often a letter was logged. @param {string} letter */
  count(letter) {
    return this.executed().filter((line) => line === letter).length;
  }

  /** Asserts that no program was executed. @param {string} [expected] */
  assertNothingExecuted(expected = 'no code of the project to be executed') {
    expect(this.executed().length === 0, expected, this.executed());
  }

  /** Returns the operator's environment. @param {boolean | string} trust @returns {Record<string, string>} */
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
    expect(!ended.late, `${args[0]} to end`, 'it was still running at the time limit');
    return ended;
  }

  /**
   * Runs a verb with --json and returns the printed document.
   * @param {readonly string[]} args
   * @param {Setting} [setting]
   * @returns {Promise<any>}
   */
  async json(args, setting) {
    const { stdout, stderr } = await this.rondo([...args, '--json'], setting);
    try {
      return JSON.parse(stdout);
    } catch {
      return expect(false, `${args.join(' ')} to print one document`, `${stdout} ${stderr}`);
    }
  }

  /**
   * Runs a loop until it waits for approval; returns the ids of the pending approvals.
   * @param {string} loop
   * @param {Setting & { args?: readonly string[], loopInput?: unknown }} [setting]
   */
  async requestApproval(loop, { args = [], loopInput = {}, ...setting } = {}) {
    const inputArgs = ['--input', JSON.stringify(loopInput)];
    const result = await this.json(['run', loop, ...inputArgs, ...args], { trust: true, ...setting });
    expect(result.status === 'paused', `${loop} to wait for approval`, result.error ?? result);
    const ids = result.pending.filter(({ kind }) => kind === 'approval').map(({ id }) => id);
    expect(ids.length > 0, `${loop} to wait for approval`, result.pending);
    return { turnId: result.turnId, sessionId: result.sessionId, ids, id: ids[0] };
  }

  /**
   * Starts a local server that records its requests.
   * @param {import('node:http').RequestListener} [answer]
   */
  async listen(answer) {
    const listener = await listen(answer);
    this.atEnd(listener.close);
    this.listener = listener;
    return listener;
  }
}

/** Creates a host with a clock that can be advanced. @param {object} [options] */
export async function createHost(options = {}) {
  const rondo = await rondoLibrary();
  const clock = { ...rondo.systemClock, now: () => rondo.systemClock.now() + clock.ahead, ahead: 0 };
  const providers = new Map([
    ['scripted', rondo.scriptedProvider()],
    ['mock', rondo.mockProvider()],
  ]);
  const schemes = [rondo.builtinTools(), rondo.execTools(), rondo.moduleTools()];
  const implementations = new Map(schemes.map((implementation) => [implementation.scheme, implementation]));
  const registry = new rondo.Registry(implementations);
  const store = options.store ?? rondo.memoryStore();
  const parts = { store, clock, ids: rondo.systemIds, registry, providers, implementations, trusts: () => true };
  const host = new rondo.Host({ ...parts, ...options });
  return { host, registry, clock, store, rondo };
}

/**
 * Returns a model that answers a call with one part.
 * @param {string} modelId
 * @param {(call: any) => { content: any[], finishReason: object }} answerTo
 */
export function modelOf(modelId, answerTo) {
  const usage = { inputTokens: { total: 1 }, outputTokens: { total: 1 } };
  return {
    ...{ specificationVersion: 'v3', provider: 'p', modelId, supportedUrls: {} },
    doGenerate: async (/** @type {any} */ call) => ({ ...answerTo(call), usage, warnings: [] }),
    doStream: async (/** @type {any} */ call) => {
      const { content, finishReason } = answerTo(call);
      const [part] = content;
      const text = { type: 'text-delta', id: '1', delta: part.text };
      const parts = [part.type === 'text' ? text : part, { type: 'finish', finishReason, usage }];
      return { stream: ReadableStream.from(parts) };
    },
  };
}

/**
 * Defines an agent that calls its only tool with the JSON of the user message.
 * @param {any} tool
 * @param {object} [more]
 */
export async function singleToolAgent(tool, more = {}) {
  const { defineAgent } = await rondoLibrary();
  const toolCalls = (/** @type {any} */ input) => [
    { type: 'tool-call', toolCallId: 'c', toolName: tool.name, input: JSON.stringify(input) },
  ];
  const answerTo = (/** @type {any[]} */ prompt) => {
    const message = prompt.at(-1);
    const isUser = message.role === 'user';
    const content = isUser ? toolCalls(JSON.parse(message.content[0].text)) : [{ type: 'text', text: 'done' }];
    const reason = isUser ? 'tool-calls' : 'stop';
    return { content, finishReason: { unified: reason, raw: reason } };
  };
  const model = modelOf('m', ({ prompt }) => answerTo(prompt));
  return defineAgent({ id: 'assistant', model, tools: [tool], input: true, ...more });
}

/**
 * Returns the value of a promise, or the code and message of its error.
 * @param {Promise<unknown>} work
 * @returns {Promise<{ code?: string, message?: string, ok?: unknown }>}
 */
export async function outcome(work) {
  try {
    return { ok: await work };
  } catch (thrown) {
    const { code, message } = /** @type {{ code?: string, message?: string }} */ (thrown);
    return { code: code ?? /** @type {Error} */ (thrown).constructor.name, message: `${message}` };
  }
}
