/**
 * A small LSEM runtime that reads one JSON document per line from stdin and writes one per line to stdout. It shares no
 * code with Rondo and could be written in any language. It supports a part of JSON Schema.
 */
import { createInterface } from 'node:readline';

/** @typedef {ReturnType<JSON['parse']>} Json Any parsed JSON. */
/** @typedef {(type: string, payload: object) => void} EmitEvent */
/**
 * @typedef {object} Call
 * @property {EmitEvent} emitEvent Emits an event of this call.
 * @property {(event: object) => void} onEvent
 * @property {string} callId
 * @property {number} depth
 * @property {(start: number) => object} since
 */

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

// Schemas. Supported keywords: type, required, properties, additionalProperties, not.

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
  if (!isObject(schema)) throw new Failure('SCHEMA', 'a schema must be an object or a boolean');
  if ('$ref' in schema) throw new Failure('SCHEMA', '$ref is not supported');
  for (const type of [schema.type ?? 'null'].flat()) {
    if (!Object.hasOwn(TYPES, type)) throw new Failure('SCHEMA', `there is no type ${JSON.stringify(type)}`);
  }
  for (const subschema of [...Object.values(schema.properties ?? {}), schema.not ?? true]) assertSchema(subschema);
}

/** @param {Json} schema @param {Json} value @returns {boolean} */
function matches(schema, value) {
  if (typeof schema === 'boolean') return schema;
  if (schema.type !== undefined && ![schema.type].flat().some((type) => TYPES[type]?.(value))) return false;
  if (schema.not !== undefined && matches(schema.not, value)) return false;
  if (!isObject(value)) return true;
  const { properties = {}, required = [], additionalProperties = true } = schema;
  if (!required.every((/** @type {string} */ name) => Object.hasOwn(value, name))) return false;
  return Object.entries(value).every(([name, member]) =>
    Object.hasOwn(properties, name) ? matches(properties[name], member) : additionalProperties !== false,
  );
}

// Definitions.

const SEMVER = /^(?:(?:0|[1-9]\d*)\.){2}(?:0|[1-9]\d*)(?:-[\w-]+(?:\.[\w-]+)*)?(?:\+[\w-]+(?:\.[\w-]+)*)?$/;

/** @param {Json} definition */
function assertDefinition(definition) {
  if (!isObject(definition)) throw new Failure('DEFINITION', 'a definition must be an object');
  const { id, name, version, kind, inputSchema, outputSchema } = definition;
  for (const text of [id, name, version]) {
    if (typeof text !== 'string' || text === '')
      throw new Failure('DEFINITION', 'id, name and version must be non-empty strings');
  }
  if (!SEMVER.test(version)) throw new Failure('DEFINITION', `${version} is not semver`);
  if (!['prompt', 'composite', 'tool'].includes(kind))
    throw new Failure('DEFINITION', 'kind must be prompt, composite or tool');
  if (!isObject(definition[kind])) throw new Failure('DEFINITION', `the member ${kind} is missing`);
  for (const schema of [inputSchema, outputSchema]) assertSchema(schema);
  if (kind !== 'composite') return;
  const { steps } = definition.composite;
  if (!Array.isArray(steps)) throw new Failure('DEFINITION', 'steps must be an array');
  for (const step of steps) {
    const isStep = isObject(step) && typeof step.loopId === 'string' && isObject(step.inputMapping);
    if (!isStep) throw new Failure('DEFINITION', 'a step needs a loopId and an inputMapping');
  }
}

// Paths: $ followed by names and indexes.

/** @param {string} path @param {Json} context @returns {Json} */
function valueAt(path, context) {
  const segment = /\.([A-Za-z_][\w-]*)|\[(\d+)\]|\['([^']*)'\]|\["([^"]*)"\]/y;
  let value = context;
  for (segment.lastIndex = 1; segment.lastIndex < path.length; ) {
    const [, ...names] = segment.exec(path) ?? [];
    const name = names.find((group) => group !== undefined);
    const exists = name !== undefined && Object.hasOwn(Object(value), name);
    if (path[0] !== '$' || !exists) throw new Failure('MAPPING', `${path} matches nothing`);
    value = value[name];
  }
  if (path === '') throw new Failure('MAPPING', 'a path must begin with $');
  return value;
}

// Runs.

/** @type {{ [name: string]: (input: Json) => Json }} */
const TOOLS = {
  echo: (input) => input,
  fail: () => {
    throw new Failure('TOOL', 'this tool always fails');
  },
};

let callCount = 0;
const MAX_DEPTH = 100;

class Runtime {
  /** @type {Map<string, Json>} */
  loops = new Map();

  /** @param {Json} definition */
  register(definition) {
    assertDefinition(definition);
    if (this.loops.has(definition.id))
      throw new Failure('DEFINITION', `the loop ${definition.id} is already registered`);
    this.loops.set(definition.id, definition);
  }

  /**
   * @param {string} loopId
   * @param {Json} input
   * @param {Call['onEvent']} onEvent
   * @param {string} [parent]
   * @returns {Promise<Json>}
   */
  async run(loopId, input, onEvent, parent, depth = 0, callId = `call-${++callCount}`) {
    const loop = this.loops.get(loopId);
    if (loop === undefined) throw new Failure('LOOP', `there is no loop ${loopId}`);
    const startedAt = performance.now();
    /** @type {Call['since']} */
    const since = (start) => ({ durationMs: performance.now() - start });
    /** @type {EmitEvent} */
    const emitEvent = (type, payload) => onEvent({ callId, ts: now(), type, payload });
    /** @param {Json} schema @param {Json} value @param {string} code */
    const check = (schema, value, code) => {
      const start = performance.now();
      if (!matches(schema, value)) throw new Failure(code, `the value does not match ${JSON.stringify(schema)}`);
      return since(start);
    };
    emitEvent('call.started', { loopId, loopVersion: loop.version, ...(parent && { parentCallId: parent }) });
    try {
      emitEvent('call.input.validated', check(loop.inputSchema, input, 'INPUT'));
      const output = await this.#runBody(loop, input, { emitEvent, onEvent, callId, depth, since });
      emitEvent('call.output.validated', check(loop.outputSchema, output, 'OUTPUT'));
      emitEvent('call.completed', { totalDurationMs: performance.now() - startedAt });
      return { status: 'ok', output };
    } catch (thrown) {
      const error = { code: thrown instanceof Failure ? thrown.code : 'FAILED', message: String(thrown) };
      emitEvent('call.errored', error);
      return { status: 'error', error };
    }
  }

  /** @param {Json} loop @param {Json} input @param {Call} call */
  #runBody(loop, input, call) {
    if (loop.kind === 'prompt') return this.#callModel(loop, input, call);
    return loop.kind === 'tool' ? this.#callTool(loop, input, call) : this.#runSteps(loop, input, call);
  }

  /** @param {Json} loop @param {Json} input @param {Call} call */
  async #callModel({ prompt, backend = { name: 'parrot' } }, input, { emitEvent, since }) {
    const { name: backendId } = backend;
    if (!['parrot', 'mute'].includes(backendId)) throw new Failure('BACKEND', `there is no backend ${backendId}`);
    const text = prompt.text.replace(/<(\w+)>/g, (/** @type {string} */ _, /** @type {string} */ name) =>
      String(Object(input)[name]),
    );
    const start = performance.now();
    emitEvent('call.backend.requested', { backendId, model: `${backendId}-1`, promptLength: text.length });
    if (backendId === 'mute') throw new Failure('BACKEND', 'the backend does not answer');
    emitEvent('call.backend.responded', { ...since(start), inputTokens: text.length, outputTokens: text.length });
    return { text: text.toUpperCase() };
  }

  /** @param {Json} loop @param {Json} input @param {Call} call */
  async #callTool({ tool }, input, { emitEvent, since }) {
    const run = TOOLS[tool.use];
    if (run === undefined && tool.outside !== true) throw new Failure('TOOL', `there is no tool ${tool.use}`);
    const start = performance.now();
    emitEvent('call.tool.invoked', { toolName: tool.use });
    const output = await (run === undefined ? callDriverTool(tool.use, input, emitEvent) : run(input));
    emitEvent('call.tool.returned', since(start));
    return output;
  }

  /** @param {Json} loop @param {Json} input @param {Call} call */
  async #runSteps({ composite }, input, { emitEvent, onEvent, callId, depth }) {
    if (depth >= MAX_DEPTH) throw new Failure('DEPTH', 'composites are nested too deep');
    /** @type {Json} */
    const context = { input };
    /** @type {Json} */
    let output;
    for (const [stepIndex, { loopId, inputMapping, outputBinding }] of composite.steps.entries()) {
      if (!this.loops.has(loopId)) throw new Failure('LOOP', `there is no loop ${loopId}`);
      const members = Object.entries(inputMapping).map(([member, path]) => [member, valueAt(String(path), context)]);
      const childCallId = `call-${++callCount}`;
      emitEvent('child.started', { childCallId, loopId, stepIndex });
      const result = await this.run(loopId, Object.fromEntries(members), onEvent, callId, depth + 1, childCallId);
      emitEvent('child.completed', { childCallId, status: result.status });
      if (result.status !== 'ok') throw new Failure('CHILD', `step ${stepIndex} failed: ${result.error.message}`);
      if (outputBinding !== undefined) context[outputBinding] = result;
      output = result.output;
    }
    return output;
  }
}

// The line protocol.

/** @type {Map<number, { emitEvent: EmitEvent, resolve: (output: Json) => void, reject: (reason: Error) => void }>} */
const pendingToolCalls = new Map();

/**
 * Calls a tool that the driver runs.
 * @param {string} tool
 * @param {Json} input
 * @param {EmitEvent} emitEvent
 * @returns {Promise<Json>}
 */
function callDriverTool(tool, input, emitEvent) {
  const call = pendingToolCalls.size + 1;
  return new Promise((resolve, reject) => {
    pendingToolCalls.set(call, { emitEvent, resolve, reject });
    send({ call, tool, input });
  });
}

/** @param {Json} answer */
function settleToolCall({ call, log, output, error }) {
  const pending = pendingToolCalls.get(call);
  if (log !== undefined) pending?.emitEvent('log', log);
  else if (error !== undefined) pending?.reject(new Failure('TOOL', error));
  else pending?.resolve(output);
}

/** @type {Runtime[]} */
const runtimes = [];

/** @param {Json} request @returns {Promise<Json>} */
async function handleRequest({ id, runtime: index, register, run }) {
  const runtime = runtimes[index];
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
  if (message.call !== undefined) settleToolCall(message);
  else {
    const { id } = message;
    handleRequest(message).then(
      (answer) => send({ id, done: answer }),
      (thrown) => send({ id, failed: String(thrown) }),
    );
  }
}
