// A host with one plan, and a record of the tools that it called.

import { memoryStore } from '../../src/adapters/memory/index.js';
import type { Host } from '../../src/host/host.js';
import type { Store } from '../../src/journal/store.js';
import type { ModelProvider } from '../../src/loops/model.js';
import type { ToolFunction } from '../../src/loops/tool-implementation.js';
import type { Entry } from '../../src/protocol/entry.js';
import type { Json } from '../../src/protocol/json.js';
import type { PlanSpec, PlanStep } from '../../src/protocol/plan.js';
import type { TurnResult } from '../../src/protocol/trace.js';
import { ManualClock } from '../../src/testing/manual-clock.js';
import { hostOf, tool } from './host-fixture.js';

interface PlanFixtureOptions {
  readonly store?: Store;
  readonly clock?: ManualClock;
  readonly providers?: readonly ModelProvider[];
  readonly seed?: number;
  /** Further definitions. */
  readonly definitions?: readonly unknown[];
  /** What the tool `act` does; it returns its input by default. */
  readonly act?: (input: Json, callCount: number) => unknown;
}

/** The definition of a plan. */
export function planDefinition(id: string, plan: PlanSpec): object {
  const schemas = { inputSchema: true, outputSchema: true };
  return { id, name: id, version: '1.0.0', kind: 'composite', ...schemas, composite: { plan } };
}

/**
 * A host with the plan `main`, the tool `act`, which is recorded, and the tool `fail`, which fails. All verbs of actions
 * are bound to `act`.
 */
export class PlanFixture {
  readonly store: Store;
  readonly clock: ManualClock;
  readonly host: Host;
  /** The inputs of the tool `act`, in order. */
  readonly calls: Json[] = [];

  constructor(plan: PlanSpec, options: PlanFixtureOptions = {}) {
    const { providers = [], definitions = [], act = (input) => input, seed = 1 } = options;
    this.store = options.store ?? memoryStore();
    this.clock = options.clock ?? new ManualClock(1_000_000);
    const perform: ToolFunction = (input) => {
      this.calls.push(input);
      return act(input, this.calls.length);
    };
    const bound = { verbs: { view: 'act', edit: 'act' }, ...plan };
    const loops = [tool('act', 'builtin:act'), tool('fail', 'builtin:fail'), ...definitions];
    this.host = hostOf([...loops, planDefinition('main', bound)], {
      store: this.store,
      clock: this.clock,
      tools: { act: perform },
      providers,
      seed,
    });
  }

  /** Runs the plan until it ends or pauses. */
  run(input: Json = {}): Promise<TurnResult> {
    return this.host.run({ loop: 'main', input, sessionId: 's', key: 'k' }, { timers: 'pause' });
  }

  /** Runs the plan, and lets time pass whenever it pauses with a timer. */
  async runToEnd(input: Json = {}): Promise<TurnResult> {
    let result = await this.run(input);
    while (result.status === 'paused') {
      const timers = result.pending.flatMap(({ until }) => (until === undefined ? [] : [Date.parse(until)]));
      if (timers.length === 0) return result;
      await this.clock.advanceTo(Math.min(...timers));
      result = await this.host.resume(result.turnId, { timers: 'pause' });
    }
    return result;
  }

  /** Answers the pending approval and continues. */
  async answer(result: TurnResult, approved: boolean): Promise<TurnResult> {
    const [approval] = await this.host.archive.approvals(result.sessionId);
    await this.host.answer({ id: approval?.id ?? '', approved, by: 'ada' });
    return this.host.resume(result.turnId, { timers: 'pause' });
  }

  /** Returns the values of the recorded entries of a type. */
  async recorded(type: string): Promise<readonly Json[]> {
    const entries: Entry[] = [];
    for await (const some of this.store.journal.read('s', 0)) entries.push(...some);
    return entries.flatMap((entry) => (entry.type === type ? [entry.value ?? null] : []));
  }
}

/** A step that calls the tool `act` with one member. */
export const act = (value: string, more: object = {}): PlanStep =>
  ({ loop: 'act', input: { value }, ...more }) as PlanStep;

/** A step that fails. */
export const fail = (more: object = {}): PlanStep =>
  ({ loop: 'fail', input: { message: 'literal:no luck' }, ...more }) as PlanStep;

/** Returns what the calls of `act` steps were given. */
export const valuesOf = ({ calls }: PlanFixture): readonly Json[] =>
  calls.map((input) => (input as { readonly value: Json }).value);
