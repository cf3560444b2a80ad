// Random programs, random delays, random cancels, signals, decisions and crashes; the journal and the auditor are judged.

import { expect } from 'vitest';
import { memoryStore } from '../../src/adapters/memory/index.js';
import { seededIds, seededRandom } from '../../src/adapters/system/seeded-ids.js';
import { Fault, LoopError } from '../../src/base/errors.js';
import type { Batch, Store } from '../../src/journal/store.js';
import { Session } from '../../src/kernel/session.js';
import type { Scope } from '../../src/protocol/body.js';
import type { Entry, Safety } from '../../src/protocol/entry.js';
import type { Json } from '../../src/protocol/json.js';
import type { Layer, PendingStep, RunOutcome } from '../../src/protocol/session.js';
import { crashingStore } from '../../src/testing/crashing-store.js';
import { ManualClock } from '../../src/testing/manual-clock.js';
import { duplicates, lateWrites, textStore, tick, ticks, unhandled } from '../support/kernel-probe.js';
import { verifies } from '../verifies.js';

type Step =
  | { op: 'call'; steps: Step[] }
  | { op: 'effect'; name: string; safety: Safety; delay: number; size: number; fails: boolean }
  | { op: 'all' | 'race'; branches: Step[][] }
  | { op: 'sleep'; ms: number }
  | { op: 'wait'; name: string }
  | { op: 'record' | 'fail' | 'micro' };

const SAFETIES: Safety[] = ['pure', 'idempotent', 'keyed', 'once'];

function program(random: () => number, size: number): Step[] {
  let left = size;
  let named = 0;
  const below = (n: number): number => Math.floor(random() * n);
  const steps = (depth: number): Step[] => Array.from({ length: 1 + below(4) }, () => step(depth));
  const step = (depth: number): Step => {
    left -= 1;
    const kind = below(12);
    if (kind <= 3 || depth > 5 || left < 0)
      return {
        op: 'effect',
        name: `e${++named}`,
        safety: SAFETIES[below(4)] ?? 'pure',
        delay: [0, 0, -1, 1, 2, 4][below(6)] ?? 0,
        size: below(8) === 0 ? 6000 : 1,
        fails: below(8) === 0,
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

class Auditor {
  readonly violations: string[] = [];
  readonly performed = new Map<string, number>();
  active = 0;
  store: Store | undefined;
  crashed = () => false;
  cancelled = () => false;
  async entries(): Promise<Entry[]> {
    const all: Entry[] = [];
    if (this.store) for await (const some of this.store.journal.read('s', 0)) all.push(...some);
    return all;
  }
}

/** The journal as it is now, without waiting. */
const peeks = new WeakMap<Store, Entry[]>();
function peekable(inner: Store): Store {
  const log: Entry[] = [];
  const store: Store = {
    ...inner,
    journal: {
      claim: (s) => inner.journal.claim(s),
      read: (s, f) => inner.journal.read(s, f),
      list: () => inner.journal.list(),
      remove: (s) => inner.journal.remove(s),
      append: (b: Batch) => inner.journal.append(b).then(() => void log.push(...b.entries)),
    },
  };
  peeks.set(store, log);
  return store;
}

/** Appends take random time, in order. */
function slowly(inner: Store, random: () => number): Store {
  let tail: Promise<unknown> = Promise.resolve();
  const append = (b: Batch): Promise<void> => {
    const wait = Math.floor(random() * 3);
    const mine = tail.then(async () => {
      for (let i = 0; i < wait; i++) await tick();
      await inner.journal.append(b);
    });
    tail = mine.catch(() => {});
    return mine;
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

interface World {
  steps: Step[];
  inner: Store;
  clock: ManualClock;
  auditor: Auditor;
  layers: Layer[];
  random: () => number;
  decisions: Map<string, number>;
  acked: Set<string>;
  sent: number;
}

function bodyOf(w: World) {
  const answer = (name: string, size: number): Json => (size > 1 ? `${name} `.repeat(size / 3) : { did: name });
  const effect = (step: Step & { op: 'effect' }, key: string) => ({
    kind: 'test',
    name: step.name,
    safety: step.safety,
    input: { size: step.size, blob: step.size > 1 ? 'i'.repeat(5000) : '' },
    perform: async (_i: Json, { idempotencyKey, signal }: { idempotencyKey: string; signal: AbortSignal }) => {
      const { auditor } = w;
      const id = idempotencyKey.slice(idempotencyKey.indexOf(':') + 1);
      const log = peeks.get(w.inner) ?? [];
      if (auditor.crashed())
        auditor.violations.push(
          `${id} ${step.safety} ${log.some((e) => e.type === 'effect.requested' && e.key === id) ? 'again' : 'first'} performed after the writer failed`,
        );
      if (auditor.cancelled()) auditor.violations.push(`${id} performed after cancel`);
      const under = (e: Entry): boolean =>
        e.key === id || e.key.startsWith(`${id}~`) || (w.layers.length > 0 && e.key.startsWith(`${id}/`));
      const base = (e: Entry): string => e.key.split('~')[0] ?? '';
      const intents = log.filter((e) => e.type === 'effect.requested' && under(e));
      const ended = new Set(
        log.filter((e) => e.type === 'effect.returned' || e.type === 'effect.failed').map((e) => e.key),
      );
      if (step.safety !== 'pure' && !intents.some((e) => !ended.has(base(e))))
        auditor.violations.push(`${id} performed without an open durable intent`);
      if (w.layers.length === 0 && ended.has(id))
        auditor.violations.push(`${id} performed although its result is durable`);
      const n = (auditor.performed.get(id) ?? 0) + 1;
      auditor.performed.set(id, n);
      if (step.safety === 'once' && n > intents.length)
        auditor.violations.push(`${id} once, performed ${n} times, ${intents.length} intents`);
      void key;
      void signal;
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
  });
  const caught = async (work: () => Promise<unknown>): Promise<Json> => {
    try {
      const v = await work();
      return typeof v === 'string' ? v.length : ((v ?? null) as Json);
    } catch (error) {
      if (!(error instanceof LoopError)) throw error;
      return { failed: error.code };
    }
  };
  const one = (step: Step, s: Scope): Promise<Json> => {
    switch (step.op) {
      case 'call':
        return caught(() => s.call({ name: 'child', body: (_: null, c) => line(step.steps, c) }, null));
      case 'effect':
        return caught(() => s.effect(effect(step, s.key)));
      case 'all':
        return caught(() => s.all(step.branches.map((b) => (x: Scope) => line(b, x))));
      case 'race':
        return caught(() => s.race(step.branches.map((b) => (x: Scope) => line(b, x))));
      case 'sleep':
        return caught(() => s.sleep(step.ms));
      case 'wait':
        return caught(() => s.wait(step.name));
      case 'record':
        return caught(() => s.record('fact.made', () => 'made'));
      case 'micro':
        return Promise.resolve(null);
      case 'fail':
        throw new LoopError('PROGRAM', 'fails here');
    }
  };
  const line = async (steps: Step[], s: Scope): Promise<Json> => {
    const out: Json[] = [];
    for (const step of steps) out.push(await one(step, s));
    return JSON.stringify(out).length < 400 ? out : out.length;
  };
  return (s: Scope) => line(w.steps, s);
}

/** What the journal says is still open and not lost. */
function openThings(entries: readonly Entry[]): string[] {
  const open = new Map<string, string>();
  const done: string[] = [];
  for (const e of entries) {
    if (e.type === 'wait.opened') open.set(e.key, 'signal');
    if (e.type === 'timer.set') open.set(e.key, 'timer');
    if (e.type === 'effect.requested' && e.safety === 'once') open.set(e.key.split('~')[0] ?? '', 'doubt');
    if (['wait.settled', 'timer.fired', 'effect.returned', 'effect.failed'].includes(e.type)) open.delete(e.key);
    if (['race.won', 'call.completed', 'call.errored', 'effect.settled'].includes(e.type)) done.push(`${e.key}/`);
  }
  return [...open]
    .filter(([key]) => !done.some((d) => key.startsWith(d)))
    .map(([key, kind]) => `${kind} ${key}`)
    .sort();
}

function judge(entries: readonly Entry[], where: string): string[] {
  const bad: string[] = [];
  for (const [i, e] of entries.entries()) if (e.seq !== i) bad.push(`seq ${e.seq} at ${i}`);
  for (const d of duplicates(entries)) bad.push(`duplicate ${d}`);
  const opened = new Set<string>();
  const closed = new Map<string, number>();
  const won = new Map<string, number>();
  let cancelled = false;
  const closes: Record<string, string> = {
    'call.completed': 'call.started',
    'call.errored': 'call.started',
    'effect.settled': 'effect.opened',
    'timer.fired': 'timer.set',
    'wait.settled': 'wait.opened',
    'race.won': 'group.opened',
  };
  const taken = new Set<string>();
  for (const e of entries) {
    const late = /^effect\.(returned|failed|decided)$/.test(e.type);
    if (e.type in closes && !opened.has(`${closes[e.type]} ${e.key}`)) bad.push(`${e.type} ${e.key} without opening`);
    if ((e.type === 'effect.returned' || e.type === 'effect.failed') && !opened.has(`effect.requested ${e.key}`))
      bad.push(`${e.type} ${e.key} without intent`);
    if (!late && e.type !== 'signal.received') {
      for (const key of closed.keys())
        if (e.key.startsWith(`${key}/`)) bad.push(`${e.type} ${e.key} after the end of ${key}`);
      for (const [key, winner] of won)
        if (e.key.startsWith(`${key}/`)) bad.push(`${e.type} ${e.key} after race ${key} was won by ${winner}`);
    }
    if (
      cancelled &&
      [
        'effect.requested',
        'effect.opened',
        'call.started',
        'timer.set',
        'wait.opened',
        'group.opened',
        'fact.made',
      ].includes(e.type)
    )
      bad.push(`${e.type} ${e.key} after cancel`);
    if (e.type === 'wait.settled') {
      if (taken.has(e.signalId ?? '')) bad.push(`signal ${e.signalId} taken twice`);
      taken.add(e.signalId ?? '');
    }
    opened.add(`${e.type} ${e.key}`);
    if (e.type === 'call.completed' || e.type === 'call.errored') closed.set(e.key, e.seq);
    if (e.type === 'race.won') won.set(e.key, e.winnerIndex ?? -1);
    if (e.type === 'cancel.requested') cancelled = true;
  }
  return bad.map((b) => `${where}: ${b}`);
}

async function life(
  w: World,
  store: Store,
  seed: number,
  opts: { hold: boolean; cancel: boolean; last: boolean },
): Promise<RunOutcome | undefined> {
  const { auditor, clock, random } = w;
  const session = await Session.open('s', { store, clock, ids: seededIds(seed), layers: w.layers });
  const late = lateWrites(session);
  auditor.crashed = () => (session as unknown as { writer: { fault: unknown } }).writer.fault !== undefined;
  const body = bodyOf(w);
  let cancelled = (await auditor.entries()).some((e) => e.type === 'cancel.requested');
  auditor.cancelled = () => cancelled;
  const signal = async (name: string): Promise<void> => {
    const id = `s${++w.sent}`;
    await session.signal({ id, name, value: random() < 0.2 ? 'x'.repeat(5000) : id });
    w.acked.add(id);
  };
  const decide = async (key: string): Promise<void> => {
    const which = random();
    const decision = which < 0.5 ? 'retry' : which < 0.8 ? 'supply' : 'fail';
    if (decision === 'retry') w.decisions.set(key, (w.decisions.get(key) ?? 0) + 1);
    await session.resolveEffect(key, decision, 'random', { value: random() < 0.3 ? 'v'.repeat(5000) : 1 });
  };
  try {
    for (let round = 0; round < 150; round++) {
      let done = false;
      const running = session.run('t1', { name: 'main', body: (_: null, s) => body(s) }, null, {
        timers: opts.hold ? 'hold' : 'pause',
      });
      running.then(
        () => {
          done = true;
        },
        () => {
          done = true;
        },
      );
      let still = 0;
      while (!done) {
        if (random() < 0.03) await signal(`w${Math.floor(random() * 3)}`).catch(() => {});
        if (opts.cancel && random() < 0.02 && !done) {
          const was = session.cancel('t1', 'random');
          was.catch(() => {});
          // from here on nothing new may be performed, if it was written
          const known = (
            session as unknown as { sessionState: { roots: Map<string, { cancelReason?: string }> } }
          ).sessionState.roots.get('t1');
          if (known?.cancelReason !== undefined) cancelled = true;
          await was.catch(() => {});
        }
        if (opts.hold && clock.nextWakeAt !== undefined && random() < 0.5) await clock.advanceTo(clock.nextWakeAt);
        await tick();
        still = auditor.active === 0 && (!opts.hold || clock.nextWakeAt === undefined) ? still + 1 : 0;
        if (still > 60 && !done)
          throw new Error(
            `HANG: nothing moves and the run does not pause; ${(await auditor.entries()).length} entries`,
          );
      }
      const outcome = await running;
      if (outcome.status !== 'paused') {
        for (const v of late) auditor.violations.push(`late: ${v}`);
        await session.close();
        return outcome;
      }
      const said = outcome.pending.map((p: PendingStep) => `${p.kind} ${p.key}`).sort();
      const entries = await auditor.entries();
      const before = entries.filter((e) => e.type !== 'signal.received');
      const expected = openThings(before);
      if (JSON.stringify(said) !== JSON.stringify(expected))
        auditor.violations.push(`pause says ${said}, the journal ${expected}`);
      if (said.length === 0) auditor.violations.push('a pause that waits for nothing');
      const pick = outcome.pending[Math.floor(random() * outcome.pending.length)];
      if (pick?.kind === 'signal') await signal(pick.name);
      if (pick?.kind === 'doubt' && session.effectsInDoubt.some((d) => d.key === pick.key)) await decide(pick.key);
      if (pick?.kind === 'timer') await clock.advanceTo(pick.until);
    }
    throw new Error('the program does not end');
  } finally {
    for (const v of late) auditor.violations.push(`late: ${v}`);
  }
}

async function one(seed: number): Promise<string[]> {
  const random = seededRandom(seed);
  const text = seed % 4 === 1 ? memoryStore() : textStore();
  const inner = peekable(text);
  const budget: Layer = async (_e, scope, next) => {
    await scope.record('fact.made', () => 1);
    return next();
  };
  const retry: Layer = async (_e, scope, next) => {
    try {
      return await next();
    } catch (e) {
      if (!(e instanceof LoopError) || e.code !== 'FAILED') throw e;
      await scope.record('fact.made', () => 'again');
      return next();
    }
  };
  const layers = seed % 3 === 0 ? (seed % 2 === 0 ? [budget] : [retry, budget]) : [];
  const w: World = {
    steps: program(random, 14),
    inner,
    clock: new ManualClock(1000),
    auditor: new Auditor(),
    layers,
    random,
    decisions: new Map(),
    acked: new Set(),
    sent: 0,
  };
  w.auditor.store = inner;
  const hold = random() < 0.4;
  const crashes = Math.floor(random() * 6);
  let outcome: RunOutcome | undefined;
  for (let i = 0; i <= crashes; i++) {
    const last = i === crashes;
    const point = last
      ? undefined
      : {
          appendNumber: 1 + Math.floor(random() * 12),
          when: random() < 0.5 ? ('before' as const) : ('after' as const),
        };
    const crashing = crashingStore(random() < 0.5 ? inner : slowly(inner, random), point);
    try {
      outcome = await life(w, crashing, seed + i, { hold, cancel: random() < 0.3, last });
    } catch (error) {
      if (!(error instanceof Fault)) return [`seed ${seed}: ${(error as Error).message}`];
    }
    await ticks(8); // effects in flight end in the void
    const bad = judge(await w.auditor.entries(), `seed ${seed} after life ${i}`);
    if (bad.length > 0) return bad.concat(w.auditor.violations.map((v) => `seed ${seed}: ${v}`));
    if (outcome !== undefined) break;
  }
  const problems = [...new Set(w.auditor.violations)].map((v) => `seed ${seed}: ${v}`);
  const entries = await w.auditor.entries();
  for (const id of w.acked)
    if (!entries.some((e) => e.type === 'signal.received' && e.key === id))
      problems.push(`seed ${seed}: acknowledged signal ${id} is lost`);
  const performed = JSON.stringify([...w.auditor.performed]);
  const again = await Session.open('s', { store: inner, clock: w.clock, ids: seededIds(99), layers });
  const body = bodyOf(w);
  const replay = await again.run('t1', { name: 'main', body: (_: null, s) => body(s) }, null, { timers: 'pause' });
  if (JSON.stringify([...w.auditor.performed]) !== performed)
    problems.push(`seed ${seed}: replay of a finished journal performed something`);
  if (JSON.stringify(replay) !== JSON.stringify(outcome))
    problems.push(
      `seed ${seed}: outcome ${JSON.stringify(outcome).slice(0, 200)} replay ${JSON.stringify(replay).slice(0, 200)}`,
    );
  return problems;
}

const COUNT = Number(process.env.ATTACK_PROGRAMS ?? 400);
const FROM = Number(process.env.ATTACK_SEED ?? 1);

verifies(
  'kernel.crash',
  `R1 ${COUNT} random programs`,
  async () => {
    const classes = new Map<string, string[]>();
    for (let seed = FROM; seed < FROM + COUNT; seed++) {
      for (const problem of await one(seed)) {
        const shape = problem
          .replace(/seed \d+( after life \d+)?: /, '')
          .replace(/t1(\/\d+)*(~\d+)?/g, 'KEY')
          .replace(/\d+/g, 'N')
          .slice(0, 120);
        classes.set(shape, [...(classes.get(shape) ?? []), problem.slice(0, 300)]);
      }
    }
    const report = [...classes].map(([shape, all]) => `${all.length} x ${shape} | e.g. ${all[0]}`);
    expect(report).toEqual([]);
    expect(unhandled.map(String)).toEqual([]);
  },
  500_000,
);
