// A small LSEM runtime, written from the specification and independent of Rondo. Mutants override its methods to introduce
// mistakes, so all methods are public.

import { Ajv2020 } from 'ajv/dist/2020.js';
import { jsonpath } from 'json-p3';
import type {
  CodeBody,
  CodeScope,
  LsemResult,
  LsemRuntime,
  SuiteToolContext,
  ToolBody,
} from '../../src/conformance/driver.js';
import type { TraceEvent } from '../../src/protocol/trace.js';
import {
  isMembers,
  isSemver,
  KINDS,
  type Members,
  type MiniLoop,
  type MiniStep,
  stepProblem,
} from './mini-definition.js';
import { compiler, type Schema, type Validator } from './mini-schema.js';

/** One call of a loop. */
export interface Call {
  readonly id: string;
  readonly loop: MiniLoop;
  readonly parent: Call | undefined;
  readonly depth: number;
  readonly startedAt: number;
  readonly send: (event: TraceEvent) => void;
}

export type Outcome = Omit<LsemResult, 'trace'>;
export type Tools = ReadonlyMap<string, ToolBody>;
export type Codes = ReadonlyMap<string, CodeBody>;

/** The values that a mapping can read. */
export interface Context {
  readonly in: unknown;
  readonly done: { [binding: string]: unknown };
}

export class Failure extends Error {
  readonly code: string;

  constructor(code: string, message: string) {
    super(message);
    this.code = code;
  }
}

const draft2020 = compiler(new Ajv2020({ strict: false }));
const CORE = /^(?:call|child)\.|^log$/;

export class Mini implements LsemRuntime {
  readonly loops = new Map<string, MiniLoop>();
  readonly tools: Tools;
  readonly codes: Codes;
  maxDepth = 50;
  calls = 0;

  constructor(tools: Tools, codes: Codes = new Map()) {
    this.tools = tools;
    this.codes = codes;
  }

  register(definition: unknown): void {
    const problem = isMembers(definition) ? this.problemOf(definition) : 'a definition is an object';
    if (problem !== undefined) throw new Error(problem);
    const loop = structuredClone(definition) as MiniLoop;
    this.loops.set(loop.id, loop);
  }

  definition(id: string): unknown {
    return structuredClone(this.loops.get(id));
  }

  async run(loopId: string, input: unknown, onEvent?: (event: TraceEvent) => void): Promise<LsemResult> {
    const loop = this.loops.get(loopId);
    if (loop === undefined) throw new Error(`there is no loop ${loopId}`);
    const trace: TraceEvent[] = [];
    const send = (event: TraceEvent): void => {
      trace.push(event);
      onEvent?.(event);
    };
    return { ...(await this.call(this.begin(loop, undefined, send), this.copyInput(input))), trace };
  }

  problemOf(definition: Members): string | undefined {
    for (const member of ['id', 'name', 'version']) {
      if (typeof definition[member] !== 'string' || definition[member] === '') return `${member} is not a string`;
    }
    const { id, version, kind, inputSchema, outputSchema } = definition;
    if (this.loops.has(String(id))) return `there is a loop ${id} already`;
    if (!this.isVersion(version)) return `the version ${version} is not semver`;
    if (!KINDS.some((known) => known === kind)) return `the kind ${kind} is none of the three`;
    const body = definition[this.bodyOf(definition)];
    if (!isMembers(body)) return `there is no ${kind} body`;
    return this.schemaProblem(inputSchema) ?? this.schemaProblem(outputSchema) ?? this.stepsProblem(body, definition);
  }

  isVersion(version: unknown): boolean {
    return isSemver(version);
  }

  /** Returns the name of the member with the body. */
  bodyOf({ kind }: Members): string {
    return String(kind);
  }

  schemaProblem(schema: unknown): string | undefined {
    if (typeof schema !== 'boolean' && !isMembers(schema)) return 'a schema is an object or a boolean';
    try {
      this.compile(schema as Schema);
      return undefined;
    } catch (thrown) {
      return `a schema cannot be compiled: ${thrown}`;
    }
  }

  stepsProblem(body: Members, { kind }: Members): string | undefined {
    if (kind !== 'composite') return undefined;
    return Array.isArray(body.steps)
      ? body.steps.map((step) => this.stepProblem(step)).find(Boolean)
      : 'steps is not a list';
  }

  stepProblem(step: unknown): string | undefined {
    return stepProblem(step);
  }

  compile(schema: Schema): Validator {
    return draft2020(schema);
  }

  copyInput(input: unknown): unknown {
    return structuredClone(input);
  }

  newId(_loop: MiniLoop, _parent: Call | undefined): string {
    this.calls += 1;
    return `call-${this.calls}`;
  }

  begin(loop: MiniLoop, parent: Call | undefined, send: Call['send']): Call {
    const depth = parent === undefined ? 0 : parent.depth + 1;
    return { id: this.newId(loop, parent), loop, parent, depth, startedAt: performance.now(), send };
  }

  stamp(_call: Call): string {
    return new Date(performance.timeOrigin + performance.now()).toISOString();
  }

  emit(call: Call, type: string, payload: Members): void {
    call.send({ callId: call.id, ts: this.stamp(call), type, payload });
  }

  async call(call: Call, input: unknown): Promise<Outcome> {
    const { loop, parent } = call;
    const identity = { loopId: loop.id, loopVersion: loop.version };
    this.emit(call, 'call.started', parent === undefined ? identity : { ...identity, parentCallId: parent.id });
    try {
      this.checkInput(call, input);
      const output = await this.body(call, input);
      this.checkOutput(call, output);
      this.emit(call, 'call.completed', { totalDurationMs: performance.now() - call.startedAt });
      return { status: 'ok', output };
    } catch (thrown) {
      const error = { code: thrown instanceof Failure ? thrown.code : 'FAILED', message: String(thrown) };
      this.emit(call, 'call.errored', error);
      return { status: 'error', error };
    }
  }

  /** Validates a value and returns the duration in milliseconds. */
  validate(schema: Schema, value: unknown, code: string): number {
    const startedAt = performance.now();
    const problem = this.compile(schema)(value);
    if (problem !== undefined) throw new Failure(code, problem);
    return performance.now() - startedAt;
  }

  checkInput(call: Call, input: unknown): void {
    const durationMs = this.validate(call.loop.inputSchema, input, 'INPUT');
    this.emit(call, 'call.input.validated', { durationMs });
  }

  checkOutput(call: Call, output: unknown): void {
    const durationMs = this.validate(call.loop.outputSchema, output, 'OUTPUT');
    this.emit(call, 'call.output.validated', { durationMs });
  }

  async body(call: Call, input: unknown): Promise<unknown> {
    const { prompt, composite, tool } = call.loop;
    const kind = this.bodyOf({ ...call.loop });
    if (kind === 'prompt' && prompt !== undefined)
      return this.ask(call, prompt.say.map((piece) => renderPiece(piece, input)).join(''), prompt.system);
    if (kind === 'tool' && tool !== undefined) return this.use(call, tool.use, input);
    const code = this.codes.get(composite?.code ?? '');
    if (code !== undefined) return code(input, this.codeScope(call));
    if (composite?.agent !== undefined) return this.runAgent(call, composite.agent);
    if (composite?.plan !== undefined) return this.runPlan(call, composite.plan, input);
    return this.compose(call, composite?.steps ?? [], input);
  }

  /** Runs an agent as a composite: its model calls are child calls, and its tools are called concurrently. */
  async runAgent(call: Call, loopIds: readonly string[]): Promise<unknown> {
    const scope = this.codeScope(call);
    const model = {
      ...call.loop,
      id: `${call.loop.id}.model`,
      kind: 'prompt',
      prompt: { say: ['What next?'] },
    } as const;
    await this.child(call, model, {});
    await scope.all?.(loopIds.map((loopId) => ({ loopId, input: {} })));
    return this.child(call, model, {});
  }

  /** Runs a plan as a composite: it calls each loop, and repeats that once. */
  async runPlan(call: Call, loopIds: readonly string[], input: unknown): Promise<unknown> {
    const scope = this.codeScope(call);
    let output: unknown;
    for (const loopId of [...loopIds, ...loopIds]) output = await scope.call(loopId, input);
    return output;
  }

  codeScope(call: Call): CodeScope {
    const callLoop = (loopId: string, input: unknown): Promise<unknown> => {
      const loop = this.loops.get(loopId);
      if (loop === undefined) throw new Failure('LOOP', `there is no loop ${loopId}`);
      return this.child(call, loop, input);
    };
    return {
      call: callLoop,
      all: (calls) => Promise.all(calls.map(({ loopId, input }) => callLoop(loopId, input))),
      effect: (name, perform) => this.performEffect(call, name, perform),
    };
  }

  async performEffect(call: Call, name: string, perform: () => unknown): Promise<unknown> {
    this.emit(call, 'mini.effect', { name });
    return perform();
  }

  private readonly children = new Map<string, number>();

  async child(call: Call, loop: MiniLoop, input: unknown): Promise<unknown> {
    const stepIndex = this.children.get(call.id) ?? 0;
    this.children.set(call.id, stepIndex + 1);
    const { status, output } = await this.runFramed(call, stepIndex, loop, input);
    if (status !== 'ok') throw new Failure('CHILD', `${loop.id} failed`);
    return output;
  }

  promptLength(prompt: string, system: string): number {
    return prompt.length + system.length;
  }

  async ask(call: Call, prompt: string, system = ''): Promise<unknown> {
    const { is: backendId, model = `${backendId}-1` } = call.loop.backend ?? { is: 'parrot' };
    if (backendId !== 'parrot' && backendId !== 'mute')
      throw new Failure('BACKEND', `there is no backend ${backendId}`);
    this.emit(call, 'call.backend.requested', { backendId, model, promptLength: this.promptLength(prompt, system) });
    const startedAt = performance.now();
    const text = await this.answer(backendId, prompt);
    const durationMs = performance.now() - startedAt;
    this.emit(call, 'call.backend.responded', { durationMs, inputTokens: prompt.length, outputTokens: text.length });
    return { text };
  }

  async answer(backendId: string, prompt: string): Promise<string> {
    if (backendId === 'mute') throw new Failure('BACKEND', 'the backend does not answer');
    return prompt.toUpperCase();
  }

  async use(call: Call, toolName: string, input: unknown): Promise<unknown> {
    const tool = this.tools.get(toolName);
    if (tool === undefined) throw new Failure('TOOL', `there is no tool ${toolName}`);
    this.emit(call, 'call.tool.invoked', { toolName });
    const startedAt = performance.now();
    const output = await this.work(call, tool, input);
    this.emit(call, 'call.tool.returned', { durationMs: performance.now() - startedAt });
    return output;
  }

  async work(call: Call, tool: ToolBody, input: unknown): Promise<unknown> {
    try {
      return await tool(input, this.toolContext(call));
    } catch (thrown) {
      throw new Failure('TOOL', String(thrown));
    }
  }

  toolContext(call: Call): SuiteToolContext {
    return {
      log: (level, message) => this.emit(call, 'log', { level, message }),
      emit: (type, payload) => {
        if (CORE.test(type)) throw new Error(`bodies cannot emit ${type}`);
        this.emit(call, type, payload as Members);
      },
    };
  }

  async compose(call: Call, steps: readonly MiniStep[], input: unknown): Promise<unknown> {
    const context: Context = { in: input, done: {} };
    let output: unknown;
    for (const [index, step] of steps.entries()) {
      const result = await this.step(call, index, step, context);
      if (result.status !== 'ok') throw new Failure('CHILD', `step ${index} failed`);
      this.bind(context, step, index, result);
      output = result.output;
    }
    return output;
  }

  bind(context: Context, { outputBinding }: MiniStep, _index: number, result: Outcome): void {
    if (outputBinding !== undefined) context.done[outputBinding] = result;
  }

  async step(call: Call, stepIndex: number, step: MiniStep, context: Context): Promise<Outcome> {
    await undefined;
    if (call.depth >= this.maxDepth) throw new Failure('DEPTH', 'composites are nested too deep');
    const loop = this.loops.get(step.loopId);
    if (loop === undefined) throw new Failure('LOOP', `there is no loop ${step.loopId}`);
    const input = this.map(step.inputMapping, context);
    return this.runFramed(call, stepIndex, loop, input);
  }

  async runFramed(call: Call, stepIndex: number, loop: MiniLoop, input: unknown): Promise<Outcome> {
    const child = this.begin(loop, call, call.send);
    this.emit(call, 'child.started', { childCallId: child.id, loopId: loop.id, stepIndex });
    await undefined;
    const result = await this.call(child, input);
    this.emit(call, 'child.completed', { childCallId: child.id, status: result.status });
    return result;
  }

  map(mapping: MiniStep['inputMapping'], context: Context): unknown {
    return Object.fromEntries(Object.entries(mapping).map(([member, path]) => [member, this.find(path, context)]));
  }

  find(path: string, context: Context): unknown {
    const values = jsonpath.query(path, JSON.parse(JSON.stringify(context))).values();
    if (values.length !== 1) throw new Failure('MAPPING', `${path} matches ${values.length} values`);
    return values[0];
  }
}

function renderPiece(piece: string | { readonly variable: string }, input: unknown): string {
  if (typeof piece === 'string') return piece;
  return isMembers(input) ? String(input[piece.variable]) : '';
}
