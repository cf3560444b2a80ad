/**
 * A small LSEM runtime as a process: one JSON document a line comes in, one a line goes out. It could be written in any
 * language and stands for one that is; it shares nothing with Rondo. Its JSON Schema is a part of the real one.
 */
import { createInterface } from 'node:readline';

/** @typedef {ReturnType<JSON['parse']>} Json What came as JSON, of any shape. */
/** @typedef {(type: string, payload: object) => void} Say */
/** @typedef {{ say: Say, emit: (event: object) => void, callId: string, depth: number, since: (start: number) => object }} Call */

/** @param {object} message */
const send = (message) => process.stdout.write(`${JSON.stringify(message)}\n`);
const now = () => new Date().toISOString();
/** @param {Json} value */
const isObject = (value) => typeof value === 'object' && value !== null && !Array.isArray(value);

class Failure extends Error {
  /** @param {string} code @param {string} message */
  constructor(code, message) {
    super(message);
    this.code = code;
  }
}

// Schemas: type, required, properties, additionalProperties, not.

/** @type {{ [type: string]: (value: Json) => boolean }} */
const TYPES = {
  string: (value) => typeof value === 'string',
  number: (value) => typeof value === 'number',
  integer: (value) => Number.isInteger(value),
  boolean: (value) => typeof value === 'boolean',
  null: (value) => value === null,
  array: (value) => Array.isArray(value),
  object: isObject,
};

/** @param {Json} schema */
function assertSchema(schema) {
  if (typeof schema === 'boolean') return;
  if (!isObject(schema)) throw new Failure('SCHEMA', 'a schema is an object or a boolean');
  if ('$ref' in schema) throw new Failure('SCHEMA', '$ref is not supported');
  for (const type of [schema.type ?? 'null'].flat()) {
    if (!Object.hasOwn(TYPES, type)) throw new Failure('SCHEMA', `there is no type ${JSON.stringify(type)}`);
  }
  for (const part of [...Object.values(schema.properties ?? {}), schema.not ?? true]) assertSchema(part);
}

/** @param {Json} schema @param {Json} value @returns {boolean} */
function fits(schema, value) {
  if (typeof schema === 'boolean') return schema;
  if (schema.type !== undefined && ![schema.type].flat().some((type) => TYPES[type]?.(value))) return false;
  if (schema.not !== undefined && fits(schema.not, value)) return false;
  if (!isObject(value)) return true;
  const { properties = {}, required = [], additionalProperties = true } = schema;
  if (!required.every((/** @type {string} */ name) => Object.hasOwn(value, name))) return false;
  return Object.entries(value).every(([name, member]) =>
    Object.hasOwn(properties, name) ? fits(properties[name], member) : additionalProperties !== false,
  );
}

// Definitions.

const SEMVER = /^(?:(?:0|[1-9]\d*)\.){2}(?:0|[1-9]\d*)(?:-[\w-]+(?:\.[\w-]+)*)?(?:\+[\w-]+(?:\.[\w-]+)*)?$/;

/** @param {Json} definition */
function assertDefinition(definition) {
  if (!isObject(definition)) throw new Failure('DEFINITION', 'a definition is an object');
  const { id, name, version, kind, inputSchema, outputSchema } = definition;
  for (const text of [id, name, version]) {
    if (typeof text !== 'string' || text === '') throw new Failure('DEFINITION', 'id, name and version are texts');
  }
  if (!SEMVER.test(version)) throw new Failure('DEFINITION', `${version} is not semver`);
  if (!['prompt', 'composite', 'tool'].includes(kind)) throw new Failure('DEFINITION', 'a kind is one of three');
  if (!isObject(definition[kind])) throw new Failure('DEFINITION', `there is no ${kind}`);
  for (const schema of [inputSchema, outputSchema]) assertSchema(schema);
  if (kind !== 'composite') return;
  const { steps } = definition.composite;
  if (!Array.isArray(steps)) throw new Failure('DEFINITION', 'steps is a list');
  for (const step of steps) {
    const whole = isObject(step) && typeof step.loopId === 'string' && isObject(step.inputMapping);
    if (!whole) throw new Failure('DEFINITION', 'a step has a loopId and an inputMapping');
  }
}

// Paths: $, then names and indexes.

/** @param {string} path @param {Json} context @returns {Json} */
function find(path, context) {
  const segment = /\.([A-Za-z_][\w-]*)|\[(\d+)\]|\['([^']*)'\]|\["([^"]*)"\]/y;
  let value = context;
  for (segment.lastIndex = 1; segment.lastIndex < path.length; ) {
    const [, ...names] = segment.exec(path) ?? [];
    const name = names.find((each) => each !== undefined);
    const found = name !== undefined && Object.hasOwn(Object(value), name);
    if (path[0] !== '$' || !found) throw new Failure('MAPPING', `${path} leads nowhere`);
    value = value[name];
  }
  if (path === '') throw new Failure('MAPPING', 'a path begins with $');
  return value;
}

// Runs.

/** @type {{ [name: string]: (input: Json) => Json }} */
const TOOLS = {
  echo: (input) => input,
  fail: () => {
    throw new Failure('TOOL', 'it always fails');
  },
};

let calls = 0;
const DEEPEST = 100;

class Runtime {
  /** @type {Map<string, Json>} */
  loops = new Map();

  /** @param {Json} definition */
  register(definition) {
    assertDefinition(definition);
    if (this.loops.has(definition.id)) throw new Failure('DEFINITION', `there is a loop ${definition.id} already`);
    this.loops.set(definition.id, definition);
  }

  /** @param {string} loopId @param {Json} input @param {Call['emit']} emit @param {string} [parent] @returns {Promise<Json>} */
  async run(loopId, input, emit, parent, depth = 0, callId = `call-${++calls}`) {
    const loop = this.loops.get(loopId);
    if (loop === undefined) throw new Failure('LOOP', `there is no loop ${loopId}`);
    const began = performance.now();
    /** @type {Call['since']} */
    const since = (start) => ({ durationMs: performance.now() - start });
    /** @type {Say} */
    const say = (type, payload) => emit({ callId, ts: now(), type, payload });
    /** @param {Json} schema @param {Json} value @param {string} code */
    const check = (schema, value, code) => {
      const start = performance.now();
      if (!fits(schema, value)) throw new Failure(code, `it does not fit ${JSON.stringify(schema)}`);
      return since(start);
    };
    say('call.started', { loopId, loopVersion: loop.version, ...(parent && { parentCallId: parent }) });
    try {
      say('call.input.validated', check(loop.inputSchema, input, 'INPUT'));
      const output = await this.#body(loop, input, { say, emit, callId, depth, since });
      say('call.output.validated', check(loop.outputSchema, output, 'OUTPUT'));
      say('call.completed', { totalDurationMs: performance.now() - began });
      return { status: 'ok', output };
    } catch (thrown) {
      const error = { code: thrown instanceof Failure ? thrown.code : 'FAILED', message: String(thrown) };
      say('call.errored', error);
      return { status: 'error', error };
    }
  }

  /** @param {Json} loop @param {Json} input @param {Call} call */
  #body(loop, input, call) {
    if (loop.kind === 'prompt') return this.#ask(loop, input, call);
    return loop.kind === 'tool' ? this.#use(loop, input, call) : this.#steps(loop, input, call);
  }

  /** @param {Json} loop @param {Json} input @param {Call} call */
  async #ask({ prompt, backend = { name: 'parrot' } }, input, { say, since }) {
    const { name: backendId } = backend;
    if (!['parrot', 'mute'].includes(backendId)) throw new Failure('BACKEND', `there is no backend ${backendId}`);
    const text = prompt.text.replace(/<(\w+)>/g, (/** @type {string} */ _, /** @type {string} */ name) =>
      String(Object(input)[name]),
    );
    const start = performance.now();
    say('call.backend.requested', { backendId, model: `${backendId}-1`, promptLength: text.length });
    if (backendId === 'mute') throw new Failure('BACKEND', 'it does not answer');
    say('call.backend.responded', { ...since(start), inputTokens: text.length, outputTokens: text.length });
    return { text: text.toUpperCase() };
  }

  /** @param {Json} loop @param {Json} input @param {Call} call */
  async #use({ tool }, input, { say, since }) {
    const run = TOOLS[tool.use];
    if (run === undefined && tool.outside !== true) throw new Failure('TOOL', `there is no tool ${tool.use}`);
    const start = performance.now();
    say('call.tool.invoked', { toolName: tool.use });
    const output = await (run === undefined ? askOutside(tool.use, input, say) : run(input));
    say('call.tool.returned', since(start));
    return output;
  }

  /** @param {Json} loop @param {Json} input @param {Call} call */
  async #steps({ composite }, input, { say, emit, callId, depth }) {
    if (depth >= DEEPEST) throw new Failure('DEPTH', 'composites are nested too deep');
    /** @type {Json} */
    const context = { input };
    /** @type {Json} */
    let output;
    for (const [stepIndex, { loopId, inputMapping, outputBinding }] of composite.steps.entries()) {
      if (!this.loops.has(loopId)) throw new Failure('LOOP', `there is no loop ${loopId}`);
      const pairs = Object.entries(inputMapping).map(([member, path]) => [member, find(String(path), context)]);
      const childCallId = `call-${++calls}`;
      say('child.started', { childCallId, loopId, stepIndex });
      const result = await this.run(loopId, Object.fromEntries(pairs), emit, callId, depth + 1, childCallId);
      say('child.completed', { childCallId, status: result.status });
      if (result.status !== 'ok') throw new Failure('CHILD', `step ${stepIndex} failed: ${result.error.message}`);
      if (outputBinding !== undefined) context[outputBinding] = result;
      output = result.output;
    }
    return output;
  }
}

// The line protocol.

/** @type {Map<number, { say: Say, resolve: (output: Json) => void, reject: (reason: Error) => void }>} */
const outside = new Map();

/** A tool that lives at the other end of the line. @param {string} tool @param {Json} input @param {Say} say @returns {Promise<Json>} */
function askOutside(tool, input, say) {
  const call = outside.size + 1;
  return new Promise((resolve, reject) => {
    outside.set(call, { say, resolve, reject });
    send({ call, tool, input });
  });
}

/** @param {Json} answer */
function answered({ call, log, output, error }) {
  const asked = outside.get(call);
  if (log !== undefined) asked?.say('log', log);
  else if (error !== undefined) asked?.reject(new Failure('TOOL', error));
  else asked?.resolve(output);
}

/** @type {Runtime[]} */
const runtimes = [];

/** @param {Json} request @returns {Promise<Json>} */
async function done({ id, runtime: number, register, run }) {
  const runtime = runtimes[number];
  if (runtime === undefined) return runtimes.push(new Runtime()) - 1;
  if (run === undefined) return runtime.register(register.definition) ?? true;
  /** @type {object[]} */
  const trace = [];
  const result = await runtime.run(run.loopId, run.input, (event) => {
    trace.push(event);
    send({ id, event });
  });
  return { ...result, trace };
}

for await (const line of createInterface({ input: process.stdin })) {
  const message = JSON.parse(line);
  if (message.call !== undefined) answered(message);
  else {
    const { id } = message;
    done(message).then(
      (answer) => send({ id, done: answer }),
      (thrown) => send({ id, failed: String(thrown) }),
    );
  }
}
