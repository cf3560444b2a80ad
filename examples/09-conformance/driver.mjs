/**
 * A driver for `rondo conformance --driver`. It connects the suite to a runtime in another process, with one JSON
 * document per line. `profile` describes what LSEM leaves open: the form of prompts, tools and backends.
 */
import { spawn } from 'node:child_process';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';

/** @import { LsemDriver, LsemResult, ToolBody } from 'rondo/testing' */
/** @typedef {ReturnType<JSON['parse']>} Json Any parsed JSON. */
/** @typedef {(event: Json) => void} OnEvent */
/**
 * @typedef {object} PendingRequest
 * @property {(value: Json) => void} resolve
 * @property {(reason: Error) => void} reject
 * @property {OnEvent | undefined} onEvent
 */

const program = fileURLToPath(new URL('runtime.mjs', import.meta.url));

/** The connection to the process, which serves all checks. Each `open` creates an empty runtime in it. */
class RuntimeProcess {
  /** @type {Map<number, PendingRequest>} */
  #pending = new Map();
  #lastId = 0;
  /** @type {Map<string, ToolBody>} */
  #tools = new Map();

  constructor() {
    // For a runtime in another language, change only this command: spawn('python3', ['runtime.py'], …).
    this.process = spawn(process.execPath, [program], { stdio: ['pipe', 'pipe', 'inherit'] });
    createInterface({ input: this.process.stdout }).on('line', (line) => this.#onMessage(JSON.parse(line)));
    this.process.on('exit', (code) => {
      for (const { reject } of this.#pending.values()) reject(new Error(`the runtime ended with code ${code}`));
    });
    this.process.stdin.on('error', () => {});
  }

  /**
   * Sends a request and returns its answer. `onEvent` is called for each event of a run.
   * @param {object} request
   * @param {OnEvent} [onEvent]
   * @returns {Promise<Json>}
   */
  request(request, onEvent) {
    const id = ++this.#lastId;
    return new Promise((resolve, reject) => {
      this.#pending.set(id, { resolve, reject, onEvent });
      this.#send({ id, ...request });
    });
  }

  /** Registers a tool that runs in this process. @param {string} name @param {ToolBody} body */
  addTool(name, body) {
    this.#tools.set(name, body);
  }

  /** @param {object} message */
  #send(message) {
    this.process.stdin.write(`${JSON.stringify(message)}\n`);
  }

  /** @param {Json} message */
  #onMessage({ id, event, done, failed, call, tool, input }) {
    if (call !== undefined) return this.#runTool(call, tool, input);
    const pending = this.#pending.get(id);
    if (event !== undefined) return pending?.onEvent?.(event);
    this.#pending.delete(id);
    if (failed !== undefined) pending?.reject(new Error(failed));
    else pending?.resolve(done);
  }

  /** @param {number} call @param {string} tool @param {Json} input */
  async #runTool(call, tool, input) {
    /** @type {(level: string, message: string) => void} */
    const log = (level, message) => this.#send({ call, log: { level, message } });
    try {
      const output = (await this.#tools.get(tool)?.(input, { log })) ?? null;
      this.#send({ call, output });
    } catch (thrown) {
      this.#send({ call, error: String(thrown) });
    }
  }
}

const runtimeProcess = new RuntimeProcess();

/** @type {LsemDriver} */
export const driver = {
  name: 'tiny',
  async open() {
    const runtime = await runtimeProcess.request({});
    return {
      register: (definition) => runtimeProcess.request({ runtime, register: { definition } }),
      run: (loopId, input, onEvent) => runtimeProcess.request({ runtime, run: { loopId, input } }, onEvent),
    };
  },
  profile: {
    prompt: (pieces) => ({
      text: pieces.map((piece) => (typeof piece === 'string' ? piece : `<${piece.variable}>`)).join(''),
    }),
    backend: {
      answering: { ref: { name: 'parrot' }, id: 'parrot', model: 'parrot-1' },
      failing: { name: 'mute' },
      unknown: { name: 'missing' },
    },
    tool: {
      echo: { use: 'echo' },
      failing: { use: 'fail' },
      unknown: { use: 'nothing' },
      custom(name, body) {
        runtimeProcess.addTool(name, body);
        return { use: name, outside: true };
      },
    },
    path: { input: '$.input', binding: (name) => `$.${name}` },
  },
};
