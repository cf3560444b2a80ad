// Random plans for crash tests, generated from a seed: steps of every kind and state machines over tools of every safety.
// What a tool returns, and whether it fails, follows from its input and the key of its call, so that the course of a plan
// depends on the plan alone. Signals named `late-…` never arrive; every other one does.

import { type RandomSource, randomFrom } from '../fuzz/broken-definitions.js';

/** A JSON object of a plan. */
export type Fields = { [name: string]: unknown };

/** A plan, the workflow that it calls, and its input. */
export interface RandomPlan {
  readonly main: Fields;
  readonly nested: Fields;
  readonly input: Fields;
}

/** The tools that plans call, one for each safety. */
export const TOOL_SAFETIES = ['pure', 'idempotent', 'keyed', 'once'] as const;

const CONDITIONS = [
  'success',
  'has_errors',
  'empty',
  'contains:1',
  'contains:2',
  'result.ok',
  'input.n > 2',
  'size(input.items) == 2',
  'result.output.n > 4',
];
const ITEMS = ['$.input.items', '$.input.one', '$.input.none'];
const VERBS = { view: 'pure', edit: 'once', send: 'keyed' };

/** Returns a call without retries if its tool is `once`: a plan that repeats one is refused. */
function repeatable(call: Fields): Fields {
  const isOnce = call.loop === 'once' || String(call.action).startsWith('edit');
  return isOnce ? { ...call, retry: { ...(call.retry as Fields | undefined), strategy: 'none' } } : call;
}

/** Generates the steps of a plan. After `remaining` steps it only adds single calls. */
class PlanGenerator {
  private readonly random: RandomSource;
  private remaining: number;
  private readonly allowsNested: boolean;
  private nameCount = 0;

  constructor(random: RandomSource, size: number, allowsNested: boolean) {
    this.random = random;
    this.remaining = size;
    this.allowsNested = allowsNested;
  }

  plan(): Fields {
    const limits = { max_transitions: 3 + this.random.below(8), max_identical_actions: 2 + this.random.below(4) };
    const retry = this.chance(0.2) ? { retry: this.retry() } : {};
    const body = this.chance(0.3) ? this.machine() : { steps: this.steps(0) };
    return { ...body, ...retry, limits, verbs: VERBS };
  }

  private chance(probability: number): boolean {
    return this.random.next() < probability;
  }

  private name(prefix: string): string {
    this.nameCount += 1;
    return `${prefix}${this.nameCount}`;
  }

  private steps(depth: number): Fields[] {
    const names = Array.from({ length: 1 + this.random.below(4) }, () => this.name('s'));
    const steps: Fields[] = [];
    for (const name of names) {
      if (steps.length > 0 && this.remaining <= 0) break;
      const step = this.step(depth);
      const condition = this.chance(0.2) ? { condition: this.random.pick(CONDITIONS) } : {};
      const capture = this.chance(0.4) && !('plugin' in step) ? { capture: this.captureName() } : {};
      steps.push({ name, ...condition, ...capture, ...step });
    }
    const targets = steps.map(({ name }) => name as string);
    return steps.map((step) => (this.chance(0.35) ? { ...step, on_error: this.onError(targets) } : step));
  }

  private captureName(): string {
    return this.random.pick(['a', 'b', 'c']);
  }

  private onError(names: readonly string[]): unknown {
    const kind = this.random.below(4);
    if (kind === 0) return { goto: this.random.pick(names) };
    return kind === 1 ? { value: { n: 7 } } : kind === 2 ? 'fail' : 'skip';
  }

  private step(depth: number): Fields {
    this.remaining -= 1;
    const kind = this.random.below(14);
    if (kind <= 4 || depth > 3 || this.remaining < 0) return this.call();
    if (kind === 5) return { type: 'sequence', sequence: { steps: this.steps(depth + 1) } };
    if (kind === 6) return { type: 'repeat', repeat: this.repeat(depth) };
    if (kind === 7) return { type: 'branch', branch: this.branch(depth) };
    if (kind === 8) return { type: 'each', each: this.each(depth) };
    if (kind <= 10) return { type: 'fanout', fanout: this.fanOut(depth) };
    if (kind === 11) {
      const retry = this.chance(0.5) ? { retry: this.retry() } : {};
      return { type: 'scope', ...retry, scope: { steps: this.steps(depth + 1) } };
    }
    if (kind === 12) return { type: 'wait', wait: this.wait() };
    return this.plugin();
  }

  /** A call of a tool, an action, or the nested workflow. */
  private call(): Fields {
    const retry = this.chance(0.3) ? { retry: this.retry() } : {};
    const kind = this.random.below(8);
    if (kind === 0) return repeatable({ action: this.action(), ...retry });
    if (kind === 1 && this.allowsNested) return { workflow: 'nested', input: '$.input', ...retry };
    const timeout = this.chance(0.15) ? { timeout_ms: 1000 } : {};
    return repeatable({ ...this.toolCall(), ...retry, ...timeout });
  }

  private toolCall(): Fields {
    return { loop: this.random.pick(TOOL_SAFETIES), input: this.toolInput() };
  }

  private toolInput(): Fields {
    const risk = this.random.pick(['never', 'sometimes', 'sometimes', 'often']);
    const path = this.random.pick(['input.n', 'result.output', 'item', 'index', 'iteration', 'a.output', 'b.output']);
    return { risk: `literal:${risk}`, label: `literal:${this.name('t')}`, value: `optional:$.${path}` };
  }

  private action(verbs: readonly string[] = ['view', 'edit', 'send']): string {
    const [verb, word] = [this.random.pick(verbs), this.random.pick(['x', 'y', '{n}'])];
    return `${verb} ${word} sometimes`;
  }

  private plugin(): Fields {
    const kind = this.random.below(5);
    if (kind === 0) return { plugin: 'condition', test: this.random.pick(CONDITIONS) };
    if (kind === 1) return { plugin: 'capture', value: '$.result.output', capture: this.captureName() };
    if (kind === 2) return { plugin: 'transform', format: 'n is {n}', capture: this.captureName() };
    const plugin = kind === 3 ? 'for-each' : 'fanout';
    return repeatable({ plugin, items: this.random.pick(ITEMS), ...this.toolCall() });
  }

  private retry(): Fields {
    const strategy = this.random.pick(['fixed', 'exponential', 'immediate', 'none']);
    const attempts = this.chance(0.7) ? { max_attempts: 1 + this.random.below(3) } : {};
    const delay = this.chance(0.7) ? { delay_ms: 1 + this.random.below(500) } : {};
    return { strategy, ...attempts, ...delay, ...(this.chance(0.6) && { fallback: this.fallback() }) };
  }

  private fallback(): unknown {
    const kind = this.random.below(5);
    if (kind === 0) return 'skip';
    if (kind === 1) return 'escalate';
    return kind === 2 ? { value: { n: 5 } } : this.toolCall();
  }

  private repeat(depth: number): Fields {
    const steps = this.steps(depth + 1);
    const kind = this.random.below(4);
    if (kind === 0) return { steps, until: this.random.pick([...CONDITIONS, 'iteration >= 1']) };
    if (kind === 1) return { steps, while: this.random.pick([...CONDITIONS, 'iteration < 2']) };
    return { steps, max: 1 + this.random.below(3), ...(kind === 2 && { until: this.random.pick(CONDITIONS) }) };
  }

  private branch(depth: number): Fields {
    const cases = Array.from({ length: 1 + this.random.below(2) }, () => ({
      condition: this.random.pick(CONDITIONS),
      steps: this.steps(depth + 1),
    }));
    return { cases, ...(this.chance(0.6) && { else: this.steps(depth + 1) }) };
  }

  private each(depth: number): Fields {
    const collect = this.chance(0.5) ? { collect: this.chance(0.8) } : {};
    return { items: this.random.pick(ITEMS), steps: this.steps(depth + 1), ...collect };
  }

  private fanOut(depth: number): Fields {
    const limit = this.chance(0.8) ? { limit: 1 + this.random.below(4) } : {};
    const join = this.chance(0.6) ? { join: this.random.pick<unknown>(['all', 'any', { quorum: 2 }]) } : {};
    const gate = this.random.pick([{ threshold: 4 }, { conflict: true }]);
    const gates = this.chance(0.2) ? { gates: [{ path: '$.n', ...gate }] } : {};
    const common = { ...limit, ...join, ...gates };
    if (this.chance(0.5)) return { items: this.random.pick(ITEMS), steps: this.steps(depth + 1), ...common };
    const branches = Array.from({ length: 1 + this.random.below(3) }, () => ({ steps: this.steps(depth + 1) }));
    return { branches, ...common };
  }

  private wait(): Fields {
    const kind = this.random.below(5);
    if (kind === 0) return { for: 1 + this.random.below(5000) };
    if (kind === 1) return { until: '1970-01-01T00:20:00Z' };
    if (kind === 2) return { signal: this.name('late-'), timeout: 1 + this.random.below(5000) };
    return { signal: this.name(kind === 3 ? 'early-' : 'signal-'), ...(this.chance(0.4) && { timeout: '1 h' }) };
  }

  private machine(): Fields {
    const names = Array.from({ length: 2 + this.random.below(3) }, (_, index) => `state${index}`);
    return { states: names.map((name, index) => this.state(name, index, names)) };
  }

  private state(name: string, index: number, names: readonly string[]): Fields {
    const hooks = {
      ...(this.chance(0.3) && { on_entry: this.action(['view', 'send']) }),
      ...(this.chance(0.3) && { on_exit: this.action(['view', 'send']) }),
    };
    const later = [...names.slice(index + 1), 'done'];
    if (this.chance(0.15)) {
      const parallel = names.filter((other) => other !== name).slice(0, 1 + this.random.below(2));
      return { name, ...hooks, parallel, join: this.random.pick(later) };
    }
    const action = this.chance(0.9) ? this.call() : {};
    if (this.chance(0.1)) return { name, ...hooks, ...action };
    const next = (): string => this.random.pick([...names, 'done', 'failed']);
    const conditional = Array.from({ length: this.random.below(3) }, () => ({
      condition: this.random.pick(CONDITIONS),
      next: next(),
    }));
    const failed = this.chance(0.7) ? [{ condition: 'has_errors', next: next() }] : [];
    return { name, ...hooks, ...action, transitions: [...conditional, ...failed, { next: this.random.pick(later) }] };
  }
}

/** Returns a random plan. The same seed gives the same plan. */
export function randomPlan(seed: number): RandomPlan {
  const random = randomFrom(seed);
  const main = new PlanGenerator(random, 14, true).plan();
  const nested = new PlanGenerator(random, 4, false).plan();
  const input = { n: random.below(5), items: ['i', 'j', 'k'].slice(0, 1 + random.below(3)), one: [1], none: [] };
  return { main, nested, input };
}

/** True if branches of a plan run concurrently, so that the order of their effects is not determined. */
export function isConcurrent(plan: RandomPlan): boolean {
  return /"(?:fanout|parallel)"/.test(JSON.stringify(plan));
}

const isFields = (value: unknown): value is Fields => typeof value === 'object' && value !== null;

/** Yields smaller forms of a value: without one member or item, or with one of them smaller. */
function* smallerForms(value: unknown): Generator<unknown> {
  if (Array.isArray(value)) {
    for (let index = 0; index < value.length; index++) yield value.toSpliced(index, 1);
    for (const [index, item] of value.entries())
      for (const smaller of smallerForms(item)) yield value.with(index, smaller);
  } else if (isFields(value)) {
    for (const [key, member] of Object.entries(value)) {
      const { [key]: _removed, ...others } = value;
      yield others;
      for (const smaller of smallerForms(member)) yield { ...value, [key]: smaller };
    }
  }
}

/**
 * Returns the smallest form of a plan that still fails: no step or member of it can be removed. `fails` returns false for
 * a form that is no valid plan.
 */
export async function shrinkPlan(
  plan: RandomPlan,
  fails: (plan: RandomPlan) => boolean | Promise<boolean>,
  maxAttempts = 3000,
): Promise<RandomPlan> {
  let smallest = plan;
  let attempts = 0;
  for (let isSmaller = true; isSmaller; ) {
    isSmaller = false;
    for (const candidate of smallerForms(smallest)) {
      attempts += 1;
      if (attempts > maxAttempts) return smallest;
      if (!(await fails(candidate as RandomPlan))) continue;
      smallest = candidate as RandomPlan;
      isSmaller = true;
      break;
    }
  }
  return smallest;
}
