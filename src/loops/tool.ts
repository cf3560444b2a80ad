/**
 * The body of a tool loop: one effect, whose safety was declared with the tool. What the tool says while it works (log
 * lines, facts of its own types) is recorded with its result.
 */

import { LoopError, outcomeOf } from '../base/errors.js';
import { lazy } from '../base/lazy.js';
import { targetDifference, targetIn } from '../base/target.js';
import type { ApprovalTarget } from '../protocol/approval.js';
import type { Effect, EffectContext, Scope, TargetBinding } from '../protocol/body.js';
import type { Safety } from '../protocol/entry.js';
import type { Json } from '../protocol/json.js';
import type { PolicySpec, ToolSpec } from '../protocol/loop.js';
import { isVendorType, LOG, type Note } from '../views/trace.js';
import type { Errand } from './agent/watch.js';
import { Bench, benchOf, type Occasion, turnOf } from './bench.js';
import {
  type Describe,
  type ResolveTarget,
  splitImplementation,
  type ToolCall,
  type ToolFunction,
} from './implementation.js';
import type { Origin } from './origin.js';

export interface ToolParts {
  readonly id: string;
  readonly safety: Safety;
  readonly config: { readonly [name: string]: Json };
  readonly policy: PolicySpec | undefined;
  /** Tells this definition from others of its id. */
  readonly definition: string;
  /** What a person is asked before it runs, for a tool that has a say in it. */
  readonly describe?: Describe | undefined;
  /** The mode that `describe` is given for the tool's own policy, whatever the mode of its agent. */
  readonly mode?: string | undefined;
  /** Without a policy of its own it is asked about, unless the agent that has it allows it by name. */
  readonly asksByDefault?: boolean;
  /** The same, for one that is asked about unless its policy says otherwise; found when it is called. */
  readonly question?: ((scope: Scope) => Describe | undefined) | undefined;
  /** How to resolve what a call acts on, for a tool whose approvals are bound to it. */
  readonly resolve?: ((scope: Scope) => ResolveTarget | undefined) | undefined;
  /** The function is one of the house: what it is told need not stand being taken apart. */
  readonly inner?: boolean;
  /** The function for one call; for an approved one, what it may act on. */
  open(scope: Scope, approved: ApprovalTarget | undefined): Promise<ToolFunction> | ToolFunction;
}

type Level = Parameters<ToolCall['log']>[0];

interface ToolOutcome {
  readonly output: Json;
  readonly notes?: readonly Note[];
  /** What the tool streamed. */
  readonly said?: string;
}

const MOST_NOTES = 1000;
/** How much of what a tool streams is kept, in characters. */
const MOST_SAID = 64 * 1024;

export function toolBody(parts: ToolParts): (input: Json, scope: Scope) => Promise<Json> {
  const { id, safety, definition, question, mode, asksByDefault = false, resolve } = parts;
  const asking: PolicySpec = { approval: 'ask', ...parts.policy };
  return (input, scope) => {
    const perform: Effect['perform'] = (given, performance) => performTool(parts, scope, given, performance);
    const asked = question?.(scope);
    const policy = asked === undefined ? parts.policy : asking;
    const describe = asked ?? parts.describe;
    const binding = resolve && (() => bindingOf(parts, scope, resolve(scope)));
    const effect: Effect = {
      kind: 'tool',
      name: id,
      input,
      safety,
      perform,
      policy,
      definition,
      describe,
      mode,
      asksByDefault,
      binding,
    };
    return scope.effect(effect).then((outcome) => (outcome as ToolOutcome).output);
  };
}

function bindingOf(parts: ToolParts, scope: Scope, find: ResolveTarget | undefined): TargetBinding | undefined {
  if (find === undefined) return undefined;
  const { id } = parts;
  const resolve: ResolveTarget = (input) => resolvedTarget(id, find, input);
  return {
    resolve,
    perform: (approved) => async (given, performance) => {
      assertTarget(id, approved, await resolve(given));
      return performTool(parts, scope, given, performance, approved);
    },
  };
}

/** What a call acts on; TOOL_FAILED for a tool that answers with something else. */
async function resolvedTarget(id: string, resolve: ResolveTarget, input: Json): Promise<ApprovalTarget | undefined> {
  const found = await resolve(input);
  if (found === undefined) return undefined;
  const target = targetIn(found);
  if (target !== undefined) return target;
  throw new LoopError(
    'TOOL_FAILED',
    `"${id}" does not say what it acts on: a target needs a kind (program, file or directory) and a path.`,
    { tool: id },
  );
}

function assertTarget(id: string, approved: ApprovalTarget | undefined, found: ApprovalTarget | undefined): void {
  const difference = targetDifference(approved, found);
  if (difference === undefined) return;
  throw new LoopError('TOOL_NOT_ADMITTED', `"${id}" did not run: ${difference}. Ask again.`, { name: id });
}

/** A tool that a definition names by its implementation. */
export function implementedTool(spec: ToolSpec, origin: Origin): Pick<ToolParts, 'open' | 'question' | 'resolve'> {
  const { scheme, target } = splitImplementation(spec.implementation);
  const { config = {} } = spec;
  const question: ToolParts['question'] = (scope) =>
    benchOf(scope).implementations.get(scheme)?.question(target, origin, config);
  const resolve: ToolParts['resolve'] = (scope) =>
    benchOf(scope).implementations.get(scheme)?.resolve(target, origin, config);
  const open: ToolParts['open'] = (scope, approved) => {
    const implementation = benchOf(scope).implementations.get(scheme);
    if (implementation === undefined) {
      throw new LoopError(
        'TOOL_FAILED',
        `No tool can be run as "${spec.implementation}": "${scheme}" is not known here.`,
      );
    }
    return implementation.open(target, origin, config, approved);
  };
  return { open, question, resolve };
}

async function performTool(
  parts: ToolParts,
  scope: Scope,
  input: Json,
  performance: EffectContext,
  approved?: ApprovalTarget,
): Promise<ToolOutcome> {
  const telling = new Telling(parts, scope, performance);
  const { notes } = telling;
  try {
    const opened = parts.open(scope, approved);
    const tool = typeof opened === 'function' ? opened : await opened;
    const output = ((await telling.bounded(tool(input, parts.inner === true ? telling : callOf(telling)))) ??
      null) as Json;
    const { said } = telling;
    return said === '' ? (notes.length === 0 ? { output } : { output, notes }) : { output, notes, said };
  } catch (thrown) {
    throw failure(parts.id, thrown, notes);
  }
}

/** What a tool is handed: it may take it apart, so nothing of it depends on how it is called. */
function callOf(telling: Telling): ToolCall {
  const { callId, idempotencyKey, config, toolCallId } = telling;
  const call = {
    callId,
    idempotencyKey,
    config,
    signal: undefined as unknown as AbortSignal,
    toolCallId,
    log: (level: Level, message: string) => telling.log(level, message),
    emit: (type: string, value?: Json) => telling.emit(type, value),
    delta: (text: string) => telling.delta(text),
  };
  return lazy(call, 'signal', () => telling.signal);
}

/** What a tool is told, and what it tells while it works. */
class Telling implements ToolCall {
  readonly callId: string;
  readonly idempotencyKey: string;
  readonly config: ToolCall['config'];
  readonly notes: Note[] = [];
  said = '';
  private readonly id: string;
  private readonly performance: EffectContext;
  private readonly occasion: Occasion | undefined;
  /** What an agent sent it for. */
  private readonly errand: Errand | undefined;
  /** Why the tool should stop, and how it hears of it, once it took too long. */
  private late: LoopError | undefined;
  private stop: AbortController | undefined;

  constructor({ id, config }: ToolParts, scope: Scope, performance: EffectContext) {
    this.id = id;
    this.callId = scope.key;
    this.idempotencyKey = performance.idempotencyKey;
    this.config = config;
    this.performance = performance;
    this.occasion = scope.context instanceof Bench ? scope.context.occasion(turnOf(scope)) : undefined;
    this.errand = this.occasion?.watching?.errand(scope.key);
  }

  get signal(): AbortSignal {
    const { signal } = this.performance;
    if (this.errand === undefined || this.stop !== undefined) return this.stop?.signal ?? signal;
    const stop = new AbortController();
    this.stop = stop;
    const { late } = this;
    if (late !== undefined || signal.aborted) stop.abort(late ?? signal.reason);
    else signal.addEventListener('abort', () => stop.abort(signal.reason), { once: true });
    return stop.signal;
  }

  get toolCallId(): string | undefined {
    return this.errand?.toolCallId;
  }

  /** What the tool gives back, within the time that the agent who called it allows. */
  bounded(work: unknown): unknown {
    const { errand } = this;
    if (errand === undefined || !isThenable(work)) return work;
    const watchdog = this.occasion?.watchdog;
    if (watchdog === undefined) return work;
    return watchdog.within(errand.limitMs, work, () => {
      const message = `"${this.id}" did not end within ${errand.limitMs} ms.`;
      this.late = new LoopError('TIMEOUT', message, { retryable: true, timeoutMs: errand.limitMs });
      this.stop?.abort(this.late);
      return this.late;
    });
  }

  log(level: Level, message: string): void {
    this.note({ type: LOG, value: { level: String(level), message: String(message) } });
  }

  emit(type: string, value?: Json): void {
    this.note(value === undefined ? { type: vendor(type) } : { type: vendor(type), value });
  }

  delta(text: string): void {
    const piece = String(text);
    if (this.said.length < MOST_SAID) this.said += piece.slice(0, MOST_SAID - this.said.length);
    const { errand, occasion } = this;
    // What comes after the end is a piece of nothing.
    if (errand === undefined || occasion?.watching?.errand(this.callId) !== errand) return;
    const { agent: generationId, toolCallId, tool: toolName } = errand;
    occasion.live?.({ kind: 'tool-output', text: piece, generationId, toolCallId, toolName });
  }

  private note(note: Note): void {
    if (this.notes.length < MOST_NOTES) this.notes.push(note);
  }
}

/** Whether it has to be waited for. */
export function isThenable(work: unknown): work is PromiseLike<unknown> {
  return typeof (work as Partial<PromiseLike<unknown>> | null | undefined)?.then === 'function';
}

function vendor(type: string): string {
  if (isVendorType(type)) return type;
  throw new LoopError(
    'VALUE_INVALID',
    `"${type}" cannot be an event of your own: use a namespace, like myorg.${type}.`,
  );
}

/** Whatever a tool throws is its failure; what it said before is told with it. */
function failure(id: string, thrown: unknown, notes: readonly Note[]): LoopError {
  const known = outcomeOf(thrown);
  const code = known.code === 'EXECUTION_FAILED' ? 'TOOL_FAILED' : known.code;
  const said = notes.filter(({ type }) => type === LOG).flatMap(({ value }) => (value === undefined ? [] : [value]));
  const base = known.data === undefined ? { tool: id } : { tool: id, ...(known.data as { [key: string]: Json }) };
  return new LoopError(code, known.message, said.length === 0 ? base : { ...base, log: said }, thrown);
}
