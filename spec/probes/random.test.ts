// Random programs with random delays, cancels, signals, resolutions and crashes; the journal and every effect are audited.

import { expect } from 'vitest';
import { memoryStore } from '../../src/adapters/memory/index.js';
import { seededIds, seededRandom } from '../../src/adapters/system/seeded-ids.js';
import { Fault, LoopError } from '../../src/base/errors.js';
import type { Layer, PendingStep, RunOutcome } from '../../src/host-entry.js';
import type { Store } from '../../src/journal/store.js';
import { Session } from '../../src/kernel/session.js';
import { crashingStore } from '../../src/testing/crashing-store.js';
import { ManualClock } from '../../src/testing/manual-clock.js';
import { auditJournal, openSteps } from '../support/journal-audit.js';
import { lateWrites, textStore, tick, ticks, unhandled } from '../support/kernel-probe.js';
import {
  Auditor,
  bodyOf,
  type ProgramRun,
  peekable,
  randomProgram,
  slowStore,
} from '../support/random-session-program.js';
import { verifies } from '../verifies.js';

interface ProcessOptions {
  readonly hold: boolean;
  readonly cancel: boolean;
  readonly last: boolean;
}

/** One process that runs a program: its session, and whether a cancellation is recorded. */
interface ProgramProcess {
  readonly program: ProgramRun;
  readonly session: Session;
  readonly options: ProcessOptions;
  isCancelled: boolean;
}

async function sendSignal({ program, session }: ProgramProcess, name: string): Promise<void> {
  const id = `s${++program.sent}`;
  await session.signal({ id, name, value: program.random() < 0.2 ? 'x'.repeat(5000) : id });
  program.acknowledged.add(id);
}

async function resolveDoubt({ program: { random }, session }: ProgramProcess, key: string): Promise<void> {
  const draw = random();
  const resolution = draw < 0.5 ? 'retry' : draw < 0.8 ? 'supply' : 'fail';
  await session.resolveEffect(key, resolution, 'random', { value: random() < 0.3 ? 'v'.repeat(5000) : 1 });
}

async function cancelTurn(process: ProgramProcess): Promise<void> {
  const { session } = process;
  const cancelling = session.cancel('t1', 'random');
  cancelling.catch(() => {});
  // Once the cancel is recorded, no further effect may be performed.
  const { roots } = (session as unknown as { sessionState: { roots: Map<string, { cancelReason?: string }> } })
    .sessionState;
  if (roots.get('t1')?.cancelReason !== undefined) process.isCancelled = true;
  await cancelling.catch(() => {});
}

/** Sends random signals and cancellations and advances the clock until the run settles. Throws if it hangs. */
async function drive(process: ProgramProcess, running: Promise<RunOutcome>): Promise<RunOutcome> {
  const { program, options } = process;
  const { auditor, clock, random } = program;
  let done = false;
  const settle = (): void => {
    done = true;
  };
  running.then(settle, settle);
  let idleTicks = 0;
  while (!done) {
    if (random() < 0.03) await sendSignal(process, `w${Math.floor(random() * 3)}`).catch(() => {});
    if (options.cancel && random() < 0.02 && !done) await cancelTurn(process);
    if (options.hold && clock.nextWakeAt !== undefined && random() < 0.5) await clock.advanceTo(clock.nextWakeAt);
    await tick();
    idleTicks = auditor.active === 0 && (!options.hold || clock.nextWakeAt === undefined) ? idleTicks + 1 : 0;
    if (idleTicks > 60 && !done)
      throw new Error(`HANG: the run neither continues nor pauses; ${(await auditor.entries()).length} entries`);
  }
  return running;
}

/** Compares the pending steps of a pause with the journal, then completes one of them. */
async function completePending(process: ProgramProcess, pending: readonly PendingStep[]): Promise<void> {
  const { session, program } = process;
  const { auditor, clock, random } = program;
  const reported = pending.map((step) => `${step.kind} ${step.key}`).sort();
  const entries = await auditor.entries();
  const expected = openSteps(entries.filter((entry) => entry.type !== 'signal.received'));
  if (JSON.stringify(reported) !== JSON.stringify(expected))
    auditor.violations.push(`the pause reports ${reported}, the journal contains ${expected}`);
  if (reported.length === 0) auditor.violations.push('a pause without pending steps');
  const pick = pending[Math.floor(random() * pending.length)];
  if (pick?.kind === 'signal') await sendSignal(process, pick.name);
  if (pick?.kind === 'doubt' && session.effectsInDoubt.some(({ key }) => key === pick.key))
    await resolveDoubt(process, pick.key);
  if (pick?.kind === 'timer') await clock.advanceTo(pick.until);
}

/** Runs a program in one process until it ends or crashes. Returns the outcome, if any. */
async function runProcess(
  program: ProgramRun,
  store: Store,
  seed: number,
  options: ProcessOptions,
): Promise<RunOutcome | undefined> {
  const { auditor, clock } = program;
  const session = await Session.open('s', { store, clock, ids: seededIds(seed), layers: program.layers });
  const late = lateWrites(session);
  auditor.crashed = () => (session as unknown as { writer: { fault: unknown } }).writer.fault !== undefined;
  const body = bodyOf(program);
  const isCancelled = (await auditor.entries()).some((entry) => entry.type === 'cancel.requested');
  const process: ProgramProcess = { program, session, options, isCancelled };
  auditor.cancelled = () => process.isCancelled;
  const timers = options.hold ? 'hold' : 'pause';
  try {
    for (let round = 0; round < 150; round++) {
      const running = session.run('t1', { name: 'main', body: (_: null, scope) => body(scope) }, null, { timers });
      const outcome = await drive(process, running);
      if (outcome.status !== 'paused') {
        for (const violation of late) auditor.violations.push(`late: ${violation}`);
        await session.close();
        return outcome;
      }
      await completePending(process, outcome.pending);
    }
    throw new Error('the program does not end');
  } finally {
    for (const violation of late) auditor.violations.push(`late: ${violation}`);
  }
}

/** Runs one random program with crashes. Returns the violations. */
async function violationsOf(seed: number): Promise<string[]> {
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
  const program: ProgramRun = {
    steps: randomProgram(random, 14),
    inner,
    clock: new ManualClock(1000),
    auditor: new Auditor(),
    layers,
    random,
    acknowledged: new Set(),
    sent: 0,
  };
  program.auditor.store = inner;
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
    const crashing = crashingStore(random() < 0.5 ? inner : slowStore(inner, random), point);
    try {
      outcome = await runProcess(program, crashing, seed + i, { hold, cancel: random() < 0.3, last });
    } catch (error) {
      if (!(error instanceof Fault)) return [`seed ${seed}: ${(error as Error).message}`];
    }
    await ticks(8); // The effects in flight end.
    const violations = auditJournal(await program.auditor.entries(), `seed ${seed} after process ${i}`);
    if (violations.length > 0) return violations.concat(program.auditor.violations.map((v) => `seed ${seed}: ${v}`));
    if (outcome !== undefined) break;
  }
  const problems = [...new Set(program.auditor.violations)].map((v) => `seed ${seed}: ${v}`);
  const entries = await program.auditor.entries();
  for (const id of program.acknowledged)
    if (!entries.some((e) => e.type === 'signal.received' && e.key === id))
      problems.push(`seed ${seed}: acknowledged signal ${id} is lost`);
  const performed = JSON.stringify([...program.auditor.performed]);
  const again = await Session.open('s', { store: inner, clock: program.clock, ids: seededIds(99), layers });
  const body = bodyOf(program);
  const replay = await again.run('t1', { name: 'main', body: (_: null, s) => body(s) }, null, { timers: 'pause' });
  if (JSON.stringify([...program.auditor.performed]) !== performed)
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
  `${COUNT} random programs keep every guarantee through crashes, cancels and signals`,
  async () => {
    const classes = new Map<string, string[]>();
    for (let seed = FROM; seed < FROM + COUNT; seed++) {
      for (const problem of await violationsOf(seed)) {
        const shape = problem
          .replace(/seed \d+( after process \d+)?: /, '')
          .replace(/t1(\/\d+)*(~\d+)?/g, 'KEY')
          .replace(/\d+/g, 'N')
          .slice(0, 120);
        classes.set(shape, [...(classes.get(shape) ?? []), problem.slice(0, 300)]);
      }
    }
    const report = [...classes].map(([shape, all]) => `${all.length} x ${shape} | e.g. ${all[0]}`);
    expect(report, 'a random program violated a guarantee').toEqual([]);
    expect(unhandled.map(String)).toEqual([]);
  },
  500_000,
);
