// Random programs for a session, and their bodies, which report every violation of an effect's guarantees.

import { LoopError } from '../../src/base/errors.js';
import type { Layer } from '../../src/host-entry.js';
import { expandLeaves } from '../../src/journal/leaf-entries.js';
import type { Batch, Store } from '../../src/journal/store.js';
import type { Effect, Scope } from '../../src/protocol/body.js';
import type { Entry, Safety } from '../../src/protocol/entry.js';
import type { Json } from '../../src/protocol/json.js';
import type { ManualClock } from '../../src/testing/manual-clock.js';
import { leafLoop } from '../../src/testing/random-programs.js';
import { tick } from './kernel-probe.js';

/** One step of a random program. */
export type Step =
  | { op: 'call'; steps: Step[] }
  | { op: 'effect'; name: string; safety: Safety; delay: number; size: number; fails: boolean; isLeaf: boolean }
  | { op: 'all' | 'race'; branches: Step[][] }
  | { op: 'sleep'; ms: number }
  | { op: 'wait'; name: string }
  | { op: 'record' | 'fail' | 'micro' };

const SAFETIES: Safety[] = ['pure', 'idempotent', 'keyed', 'once'];

/** Generates a program of about `size` steps. */
export function randomProgram(random: () => number, size: number): Step[] {
  let remaining = size;
  let effectCount = 0;
  const below = (n: number): number => Math.floor(random() * n);
  const steps = (depth: number): Step[] => Array.from({ length: 1 + below(4) }, () => step(depth));
  const step = (depth: number): Step => {
    remaining -= 1;
    const kind = below(12);
    if (kind <= 3 || depth > 5 || remaining < 0)
      return {
        op: 'effect',
        name: `e${++effectCount}`,
        safety: SAFETIES[below(4)] ?? 'pure',
        delay: [0, 0, -1, 1, 2, 4][below(6)] ?? 0,
        size: below(8) === 0 ? 6000 : 1,
        fails: below(8) === 0,
        isLeaf: below(3) === 0,
      };
    if (kind === 4) return { op: 'call', steps: steps(depth + 1) };
    if (kind === 5) return { op: 'record' };
    if (kind === 6) return { op: below(3) === 0 ? 'fail' : 'micro' };
    if (kind === 7) return { op: 'sleep', ms: below(4) * 10 };
    if (kind === 8) return { op: 'wait', name: `w${below(3)}` };
    const branches = Array.from({ length: 1 + below(kind === 11 ? 10 : 3) }, () => steps(depth + 1));
    return { op: kind === 9 ? 'all' : 'race', branches };
  };
  return Array.from({ length: 2 + below(3) }, () => step(0));
}

/** Collects violations, and knows when effects must no longer be performed. */
export class Auditor {
  readonly violations: string[] = [];
  readonly performed = new Map<string, number>();
  active = 0;
  store: Store | undefined;
  /** True after the writer failed. */
  crashed = () => false;
  /** True after the turn was cancelled. */
  cancelled = () => false;
  async entries(): Promise<Entry[]> {
    const all: Entry[] = [];
    if (this.store) for await (const some of this.store.journal.read('s', 0)) all.push(...some);
    return all;
  }
}

/** The durable entries of each store, readable without waiting. */
const durableEntries = new WeakMap<Store, Entry[]>();
/** A store whose durable entries the bodies can read synchronously. */
export function peekable(inner: Store): Store {
  const log: Entry[] = [];
  const store: Store = {
    ...inner,
    journal: {
      claim: (s) => inner.journal.claim(s),
      read: (s, f) => inner.journal.read(s, f),
      list: () => inner.journal.list(),
      remove: (s) => inner.journal.remove(s),
      append: (b: Batch) => inner.journal.append(b).then(() => void log.push(...expandLeaves(b.entries))),
    },
  };
  durableEntries.set(store, log);
  return store;
}

/** A store whose appends take random time, in order. */
export function slowStore(inner: Store, random: () => number): Store {
  let tail: Promise<unknown> = Promise.resolve();
  const append = (b: Batch): Promise<void> => {
    const wait = Math.floor(random() * 3);
    const appended = tail.then(async () => {
      for (let i = 0; i < wait; i++) await tick();
      await inner.journal.append(b);
    });
    tail = appended.catch(() => {});
    return appended;
  };
  return {
    ...inner,
    journal: {
      claim: (s) => inner.journal.claim(s),
      read: (s, f) => inner.journal.read(s, f),
      list: () => inner.journal.list(),
      remove: (s) => inner.journal.remove(s),
      append,
    },
  };
}

/** A program and the state that its runs share. */
export interface ProgramRun {
  steps: Step[];
  inner: Store;
  clock: ManualClock;
  auditor: Auditor;
  layers: Layer[];
  random: () => number;
  /** The ids of the acknowledged signals. */
  acknowledged: Set<string>;
  /** The number of signals sent. */
  sent: number;
}

type EffectStep = Step & { op: 'effect' };

const answer = (name: string, size: number): Json => (size > 1 ? `${name} `.repeat(size / 3) : { did: name });

/** Reports the violations of a call of an effect: after a crash or cancel, without an intent, or once too often. */
function auditEffect(run: ProgramRun, step: EffectStep, idempotencyKey: string): void {
  const { auditor } = run;
  const id = idempotencyKey.slice(idempotencyKey.indexOf(':') + 1);
  const log = durableEntries.get(run.inner) ?? [];
  if (auditor.crashed())
    auditor.violations.push(
      `${id} ${step.safety} ${log.some((e) => e.type === 'effect.requested' && e.key === id) ? 'again' : 'first'} performed after the writer failed`,
    );
  if (auditor.cancelled()) auditor.violations.push(`${id} performed after cancel`);
  const belongsToEffect = (e: Entry): boolean =>
    e.key === id || e.key.startsWith(`${id}~`) || (run.layers.length > 0 && e.key.startsWith(`${id}/`));
  const effectKey = (e: Entry): string => e.key.split('~')[0] ?? '';
  const intents = log.filter((e) => e.type === 'effect.requested' && belongsToEffect(e));
  const ended = new Set(
    log.filter((e) => e.type === 'effect.returned' || e.type === 'effect.failed').map((e) => e.key),
  );
  if (step.safety !== 'pure' && !intents.some((e) => !ended.has(effectKey(e))))
    auditor.violations.push(`${id} performed without an open durable intent`);
  if (run.layers.length === 0 && ended.has(id))
    auditor.violations.push(`${id} performed although its result is durable`);
  const n = (auditor.performed.get(id) ?? 0) + 1;
  auditor.performed.set(id, n);
  if (step.safety === 'once' && n > intents.length)
    auditor.violations.push(`${id} is once, but was performed ${n} times with ${intents.length} intents`);
}

function effectOf(run: ProgramRun, step: EffectStep) {
  return {
    kind: 'test',
    name: step.name,
    safety: step.safety,
    input: { size: step.size, blob: step.size > 1 ? 'i'.repeat(5000) : '' },
    perform: async (_i: Json, { idempotencyKey }: { idempotencyKey: string }) => {
      const { auditor } = run;
      auditEffect(run, step, idempotencyKey);
      auditor.active += 1;
      try {
        if (step.delay < 0) await undefined;
        for (let i = 0; i < step.delay; i++) await tick();
      } finally {
        auditor.active -= 1;
      }
      if (step.fails) throw new LoopError('FAILED', `${step.name} fails`, { by: 'design' });
      return answer(step.name, step.size);
    },
  };
}

/** Performs an effect as a step of its own, or as a leaf call. */
function runEffect(effect: Effect, isLeaf: boolean, scope: Scope): Promise<unknown> {
  return isLeaf ? scope.call(leafLoop(effect), effect.input as Json) : scope.effect(effect);
}

/** Returns the body of a program. Its effects report violations to the auditor. */
export function bodyOf(run: ProgramRun) {
  const resultOrCode = async (work: () => Promise<unknown>): Promise<Json> => {
    try {
      const v = await work();
      return typeof v === 'string' ? v.length : ((v ?? null) as Json);
    } catch (error) {
      if (!(error instanceof LoopError)) throw error;
      return { failed: error.code };
    }
  };
  const runStep = (step: Step, s: Scope): Promise<Json> => {
    switch (step.op) {
      case 'call':
        return resultOrCode(() => s.call({ name: 'child', body: (_: null, c) => runSteps(step.steps, c) }, null));
      case 'effect':
        return resultOrCode(() => runEffect(effectOf(run, step), step.isLeaf, s));
      case 'all':
        return resultOrCode(() => s.all(step.branches.map((b) => (x: Scope) => runSteps(b, x))));
      case 'race':
        return resultOrCode(() => s.race(step.branches.map((b) => (x: Scope) => runSteps(b, x))));
      case 'sleep':
        return resultOrCode(() => s.sleep(step.ms));
      case 'wait':
        return resultOrCode(() => s.wait(step.name));
      case 'record':
        return resultOrCode(() => s.record('fact.made', () => 'made'));
      case 'micro':
        return Promise.resolve(null);
      case 'fail':
        throw new LoopError('PROGRAM', 'fails here');
    }
  };
  const runSteps = async (steps: Step[], s: Scope): Promise<Json> => {
    const out: Json[] = [];
    for (const step of steps) out.push(await runStep(step, s));
    return JSON.stringify(out).length < 400 ? out : out.length;
  };
  return (s: Scope) => runSteps(run.steps, s);
}
