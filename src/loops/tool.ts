/**
 * The body of a tool loop: one effect, whose safety was declared with the tool. What the tool says while it works (log
 * lines, facts of its own types) is recorded with its result.
 */
import { LoopError, outcomeOf } from '../journal/errors.js';
import type { Effect, Performance } from '../kernel/effect.js';
import type { Scope } from '../kernel/scope.js';
import type { Safety } from '../protocol/entry.js';
import type { Json } from '../protocol/json.js';
import type { PolicySpec, ToolSpec } from '../protocol/loop.js';
import { isVendorType, LOG, type Note } from '../views/trace.js';
import { benchOf } from './bench.js';
import { splitImplementation, type ToolCall, type ToolFunction } from './implementation.js';
import type { Origin } from './origin.js';

export interface ToolParts {
  readonly id: string;
  readonly safety: Safety;
  readonly config: { readonly [name: string]: Json };
  readonly policy: PolicySpec | undefined;
  /** Tells this definition from others of its id. */
  readonly definition: string;
  /** The function, found when the tool is first called. */
  open(scope: Scope): Promise<ToolFunction> | ToolFunction;
}

interface ToolOutcome {
  readonly output: Json;
  readonly notes?: readonly Note[];
}

const MOST_NOTES = 1000;

export function toolBody(parts: ToolParts): (input: Json, scope: Scope) => Promise<Json> {
  const { id, safety, policy, definition } = parts;
  return async (input, scope) => {
    const perform: Effect['perform'] = (given, performance) => performTool(parts, scope, given, performance);
    const effect: Effect = { kind: 'tool', name: id, input, safety, perform };
    const { output } = (await scope.effect(
      policy === undefined ? effect : Object.assign(effect, { policy, definition }),
    )) as ToolOutcome;
    return output;
  };
}

/** A tool that a definition names by its implementation. */
export function implementedTool(spec: ToolSpec, origin: Origin): ToolParts['open'] {
  const { scheme, target } = splitImplementation(spec.implementation);
  return (scope) => {
    const implementation = benchOf(scope).implementations.get(scheme);
    if (implementation === undefined) {
      throw new LoopError(
        'TOOL_FAILED',
        `No tool can be run as "${spec.implementation}": "${scheme}" is not known here.`,
      );
    }
    return implementation.open(target, origin, spec.config ?? {});
  };
}

async function performTool(
  parts: ToolParts,
  scope: Scope,
  input: Json,
  performance: Performance,
): Promise<ToolOutcome> {
  const notes: Note[] = [];
  const say = (note: Note): void => {
    if (notes.length < MOST_NOTES) notes.push(note);
  };
  const told: ToolCall = {
    callId: scope.key,
    idempotencyKey: performance.idempotencyKey,
    get signal() {
      return performance.signal;
    },
    config: parts.config,
    log: (level, message) => say({ type: LOG, value: { level: String(level), message: String(message) } }),
    emit: (type, value) => say(value === undefined ? { type: vendor(type) } : { type: vendor(type), value }),
  };
  try {
    const tool = await parts.open(scope);
    const output = ((await tool(input, told)) ?? null) as Json;
    return notes.length === 0 ? { output } : { output, notes };
  } catch (thrown) {
    throw failure(parts.id, thrown, notes);
  }
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
