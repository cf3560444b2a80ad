/**
 * A driver for a runtime that is another process and speaks one JSON document a line. `rondo conformance --driver` takes
 * it; what LSEM leaves open (how prompts, tools and backends are written) is in `profile`.
 */
import { spawn } from 'node:child_process';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';

/** @import { LsemDriver, LsemResult, ToolBody } from 'rondo/testing' */
/** @typedef {ReturnType<JSON['parse']>} Json What came as JSON, of any shape. */
/** @typedef {(event: Json) => void} OnEvent */
/** @typedef {{ resolve: (value: Json) => void, reject: (reason: Error) => void, onEvent: OnEvent | undefined }} Asked */

const program = fileURLToPath(new URL('runtime.mjs', import.meta.url));

/** One process for the whole judgement; each `open` begins an empty runtime in it. */
class Line {
  /** @type {Map<number, Asked>} */
  #asked = new Map();
  #last = 0;
  /** @type {Map<string, ToolBody>} */
  #tools = new Map();

  constructor() {
    // For a runtime in another language: spawn('python3', ['runtime.py'], …), and the rest stays as it is.
    this.process = spawn(process.execPath, [program], { stdio: ['pipe', 'pipe', 'inherit'] });
    createInterface({ input: this.process.stdout }).on('line', (line) => this.#heard(JSON.parse(line)));
    this.process.on('exit', (code) => {
      for (const { reject } of this.#asked.values()) reject(new Error(`the runtime ended with code ${code}`));
    });
    this.process.stdin.on('error', () => {});
  }

  /** Sends a request; events of a run are handed over as they come. @param {object} request @param {OnEvent} [onEvent] @returns {Promise<Json>} */
  ask(request, onEvent) {
    const id = ++this.#last;
    return new Promise((resolve, reject) => {
      this.#asked.set(id, { resolve, reject, onEvent });
      this.#send({ id, ...request });
    });
  }

  /** A tool whose body is a function here. @param {string} name @param {ToolBody} body */
  tool(name, body) {
    this.#tools.set(name, body);
  }

  /** @param {object} message */
  #send(message) {
    this.process.stdin.write(`${JSON.stringify(message)}\n`);
  }

  /** @param {Json} message */
  #heard({ id, event, done, failed, call, tool, input }) {
    if (call !== undefined) return this.#work(call, tool, input);
    const asked = this.#asked.get(id);
    if (event !== undefined) return asked?.onEvent?.(event);
    this.#asked.delete(id);
    if (failed !== undefined) asked?.reject(new Error(failed));
    else asked?.resolve(done);
  }

  /** @param {number} call @param {string} tool @param {Json} input */
  async #work(call, tool, input) {
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

const line = new Line();

/** @type {LsemDriver} */
export const driver = {
  name: 'tiny',
  async open() {
    const runtime = await line.ask({});
    return {
      register: (definition) => line.ask({ runtime, register: { definition } }),
      run: (loopId, input, onEvent) => line.ask({ runtime, run: { loopId, input } }, onEvent),
    };
  },
  profile: {
    prompt: (pieces) => ({
      text: pieces.map((piece) => (typeof piece === 'string' ? piece : `<${piece.variable}>`)).join(''),
    }),
    backend: {
      answering: { ref: { name: 'parrot' }, id: 'parrot', model: 'parrot-1' },
      failing: { name: 'mute' },
      unknown: { name: 'nobody' },
    },
    tool: {
      echo: { use: 'echo' },
      failing: { use: 'fail' },
      unknown: { use: 'nothing' },
      custom(name, body) {
        line.tool(name, body);
        return { use: name, outside: true };
      },
    },
    path: { input: '$.input', binding: (name) => `$.${name}` },
  },
};
