/**
 * Random programs for crash tests, generated from a seed: trees of calls, effects of every safety, parallel branches,
 * races, timers, waits, records, failures and cancellations. The entries of a program depend on the program alone: the
 * branches of a race have distinct timers, every wait has its own signal name, and the result of an effect follows from
 * its name and size.
 */

import { LoopError } from '../base/errors.js';
import type { Effect, Loop, Scope } from '../protocol/body.js';
import type { Safety } from '../protocol/entry.js';
import type { Json } from '../protocol/json.js';

type EffectForm = 'effect' | 'leaf' | 'tool';

/** One step of a random program. */
export type ProgramStep =
  | { readonly op: 'call'; readonly name: string; readonly steps: readonly ProgramStep[] }
  | {
      readonly op: 'effect';
      readonly name: string;
      readonly safety: Safety;
      readonly size: number;
      readonly fails: boolean;
      /** A step of its own, a leaf call, or a leaf call like that of a tool, whose output is a member of the result. */
      readonly form: EffectForm;
    }
  | { readonly op: 'all' | 'race'; readonly branches: readonly (readonly ProgramStep[])[] }
  | { readonly op: 'sleep'; readonly ms: number }
  | { readonly op: 'wait'; readonly name: string }
  | { readonly op: 'now' | 'random' | 'fail' | 'cancel' };

const SAFETIES: readonly Safety[] = ['pure', 'idempotent', 'keyed', 'once'];
const FORMS: readonly EffectForm[] = ['effect', 'effect', 'leaf', 'tool'];

class ProgramGenerator {
  private readonly random: () => number;
  private nameCount = 0;
  private remainingSteps: number;

  constructor(random: () => number, size: number) {
    this.random = random;
    this.remainingSteps = size;
  }

  steps(depth: number, instant: boolean): ProgramStep[] {
    const steps: ProgramStep[] = [];
    const count = 1 + this.randomBelow(4);
    for (let i = 0; i === 0 || (i < count && this.remainingSteps > 0); i++) steps.push(this.step(depth, instant));
    return steps;
  }

  /**
   * Generates a step. An instant step takes no time on the clock. After its timer, a branch of a race has only such
   * steps, so the timers decide the race.
   */
  private step(depth: number, instant: boolean): ProgramStep {
    this.remainingSteps -= 1;
    const kind = this.randomBelow(instant ? 6 : 11);
    if (kind <= 2 || depth > 4 || this.remainingSteps < 0) return this.effect();
    if (kind === 3) return { op: 'call', name: this.name('loop'), steps: this.steps(depth + 1, instant) };
    if (kind === 4) return { op: this.randomBelow(2) === 0 ? 'now' : 'random' };
    if (kind === 5) return { op: this.randomBelow(4) === 0 ? 'fail' : 'now' };
    if (kind <= 7) return { op: 'all', branches: this.branches(() => this.steps(depth + 1, false)) };
    if (kind === 8) return this.race(depth);
    if (kind === 9) return { op: 'sleep', ms: this.randomBelow(100_000) };
    return { op: 'wait', name: this.name('signal') };
  }

  private effect(): ProgramStep {
    const safety = SAFETIES[this.randomBelow(4)] ?? 'pure';
    const size = this.randomBelow(12) === 0 ? 6000 : 1;
    const form = FORMS[this.randomBelow(4)] ?? 'effect';
    return { op: 'effect', name: this.name('effect'), safety, size, fails: this.randomBelow(10) === 0, form };
  }

  private race(depth: number): ProgramStep {
    let ms = 0;
    const timedBranch = (): ProgramStep[] => {
      ms += 1 + this.randomBelow(1000);
      return [{ op: 'sleep', ms }, ...this.steps(depth + 1, true)];
    };
    return { op: 'race', branches: this.branches(timedBranch) };
  }

  private branches(make: () => ProgramStep[]): ProgramStep[][] {
    return Array.from({ length: 1 + this.randomBelow(3) }, make);
  }

  private name(kind: string): string {
    this.nameCount += 1;
    return `${kind}-${this.nameCount}`;
  }

  private randomBelow(limit: number): number {
    return Math.floor(this.random() * limit);
  }
}

/**
 * Generates a program. After `size` steps it only adds single effects, and ends at random. One program in eight cancels
 * itself at a random top-level step.
 */
export function randomProgram(random: () => number, size: number): readonly ProgramStep[] {
  const generator = new ProgramGenerator(random, size);
  const steps: ProgramStep[] = [];
  while (steps.length < 2 || random() < 0.6) steps.push(...generator.steps(0, false));
  if (random() < 0.125) steps.splice(Math.floor(random() * steps.length), 0, { op: 'cancel' });
  return steps;
}

/** What programs do outside of the journal; a test implements it. */
export interface OutsideWorld {
  /** Called when an effect of the program is performed. */
  perform(name: string, safety: Safety, idempotencyKey: string): Promise<void> | void;
  /** Cancels the program. */
  cancel(): Promise<unknown>;
}

/**
 * Returns the result of an effect with this name, size and form: a long text for a size above 1. It is known in advance,
 * so that a test can supply it for an effect in doubt.
 */
export function programEffectResult(name: string, size: number, form: EffectForm = 'effect'): Json {
  const output = size > 1 ? `${name} `.repeat(size / 8) : { did: name };
  return form === 'tool' ? { output } : output;
}

function programEffect(step: ProgramStep & { op: 'effect' }, outside: OutsideWorld): Effect {
  const { name, safety, size, fails, form } = step;
  return {
    kind: 'test',
    name,
    safety,
    input: { size },
    perform: async (_input, { idempotencyKey }) => {
      await outside.perform(name, safety, idempotencyKey);
      if (fails) throw new LoopError('EXECUTION_FAILED', `${name} fails by design`);
      return programEffectResult(name, size, form);
    },
  };
}

/** Returns a loop whose calls consist of an effect. Its body is what a call does that is no leaf call. */
export function leafLoop(effect: Effect, outputMember?: string): Loop<Json, Json> {
  const leaf = { effect: () => effect, outputMember };
  const outputOf = (result: unknown): Json =>
    (outputMember === undefined ? result : (result as { readonly [name: string]: Json })[outputMember]) as Json;
  return { name: `loop of ${effect.name}`, leaf, body: async (_, scope) => outputOf(await scope.effect(effect)) };
}

function runProgramEffect(step: ProgramStep & { op: 'effect' }, scope: Scope, outside: OutsideWorld): Promise<unknown> {
  const effect = programEffect(step, outside);
  if (step.form === 'effect') return scope.effect(effect);
  return scope.call(leafLoop(effect, step.form === 'tool' ? 'output' : undefined), effect.input as Json);
}

const cancelEffect = (outside: OutsideWorld): Effect => ({
  kind: 'test',
  name: 'cancel',
  safety: 'idempotent',
  input: null,
  perform: async () => {
    await outside.cancel();
    return null;
  },
});

async function runProgramStep(step: ProgramStep, scope: Scope, outside: OutsideWorld): Promise<Json> {
  switch (step.op) {
    case 'call':
      return valueOrFailure(() => scope.call(programLoop(step.name, step.steps, outside), { of: step.name }));
    case 'effect':
      return valueOrFailure(() => runProgramEffect(step, scope, outside));
    case 'all':
      return valueOrFailure(() =>
        scope.all(step.branches.map((steps) => (branch: Scope) => runProgramSteps(steps, branch, outside))),
      );
    case 'race':
      return valueOrFailure(() =>
        scope.race(step.branches.map((steps) => (branch: Scope) => runProgramSteps(steps, branch, outside))),
      );
    case 'sleep':
      await scope.sleep(step.ms);
      return step.ms;
    case 'wait':
      return (await scope.wait(step.name)) ?? null;
    case 'now':
      return scope.now();
    case 'random':
      return (await scope.random()) < 1;
    case 'cancel':
      return valueOrFailure(() => scope.effect(cancelEffect(outside)));
    case 'fail':
      throw new LoopError('EXECUTION_FAILED', 'the program fails here');
  }
}

/** Converts a LoopError to a value, so that the program continues, and a text to its length. Rethrows other errors. */
async function valueOrFailure(work: () => Promise<unknown>): Promise<Json> {
  try {
    const value = await work();
    return typeof value === 'string' ? value.length : ((value ?? null) as Json);
  } catch (error) {
    if (!(error instanceof LoopError)) throw error;
    // A test resolves a failed effect in doubt as failed. For the program, this is the same failure.
    return { failed: error.code === 'EFFECT_IN_DOUBT' ? 'EXECUTION_FAILED' : error.code };
  }
}

async function runProgramSteps(steps: readonly ProgramStep[], scope: Scope, outside: OutsideWorld): Promise<Json> {
  const values: Json[] = [];
  for (const step of steps) values.push(await runProgramStep(step, scope, outside));
  return JSON.stringify(values).length < 500 ? values : values.length;
}

/** Returns a loop that runs the steps of a program. */
export function programLoop(name: string, steps: readonly ProgramStep[], outside: OutsideWorld): Loop<Json, Json> {
  return { name, body: (_input, scope) => runProgramSteps(steps, scope, outside) };
}
