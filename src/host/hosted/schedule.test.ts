// When turns are due: overlap, catch-up, clocks that are set, and that every due time is dealt with exactly once.

import fc from 'fast-check';
import { expect } from 'vitest';
import { verifies } from '../../../spec/verifies.js';
import type {
  CatchUpRule,
  CronSchedule,
  HostedSchedule,
  IntervalSchedule,
  OverlapRule,
} from '../../protocol/hosted-loop.js';
import type { DuePlan } from '../../views/hosted-loop.js';
import { nextDueTime } from './due-times.js';
import { dueAfterTurn, dueWhenLate, findScheduleProblem, firstDue } from './schedule.js';

const HOUR = 3_600_000;
const hourly: IntervalSchedule = { everyMs: HOUR };
/** The start of the loop. */
const T = 1_000_000;
/** A time in hours after the start. */
const h = (hours: number): number => T + hours * HOUR;

const problems: readonly [schedule: unknown, problem: string | undefined][] = [
  [{ cron: '0 9 * * MON-FRI', zone: 'Europe/Berlin' }, undefined],
  [{ cron: '0 9 * * *', zone: 'UTC' }, undefined],
  [{ cron: '0 9 * * *', zone: 'Etc/GMT+5' }, undefined],
  [{ cron: '0 0 29 2 *', zone: 'Asia/Kolkata' }, undefined],
  [{ cron: '0 0 * 2 5#5', zone: 'UTC' }, undefined],
  [{ everyMs: 1000 }, undefined],
  [{ everyMs: 316_224_000_000 }, undefined],
  [{ delayMs: 0 }, undefined],
  [undefined, ': must have exactly'],
  [null, ': must have exactly'],
  ['0 9 * * *', ': must have exactly'],
  [[], ': must have exactly'],
  [{}, ': must have exactly'],
  [{ cron: '0 9 * * *' }, ': must have exactly'],
  [{ zone: 'UTC' }, ': must have exactly'],
  [{ everyMs: 1000, delayMs: 0 }, ': must have exactly'],
  [{ everyMs: 1000, startAt: 0 }, ': must have exactly'],
  [{ cron: '0 9 * * *', zone: 'UTC', everyMs: 1000 }, ': must have exactly'],
  [JSON.parse('{"__proto__": {"everyMs": 1000}}'), ': must have exactly'],
  [Object.create({ everyMs: 1000 }), ': must have exactly'],
  [{ everyMs: 999 }, '.everyMs: must be a whole number from 1000 to 316224000000'],
  [{ everyMs: 1500.5 }, '.everyMs: must be'],
  [{ everyMs: '1000' }, '.everyMs: must be'],
  [{ everyMs: 316_224_000_001 }, '.everyMs: must be'],
  [{ delayMs: -1 }, '.delayMs: must be a whole number from 0 to 316224000000'],
  [{ delayMs: Number.NaN }, '.delayMs: must be'],
  [{ delayMs: Number.POSITIVE_INFINITY }, '.delayMs: must be'],
  [{ cron: '0 25 * * *', zone: 'UTC' }, '.cron: the hour "25" is invalid'],
  [{ cron: '0 0 30 2 *', zone: 'UTC' }, '.cron: no date matches it'],
  [{ cron: '0 0 31 4,6,9,11 *', zone: 'Europe/Berlin' }, '.cron: no date matches it'],
  [{ cron: '0 9 * * *', zone: 'Europe/Atlantis' }, '.zone: must be an IANA time zone'],
  [{ cron: '0 9 * * *', zone: '+01:00' }, '.zone: must be an IANA time zone'],
  [{ cron: '0 9 * * *', zone: '' }, '.zone: must be an IANA time zone'],
  [{ cron: '0 9 * * *', zone: 60 }, '.zone: must be an IANA time zone'],
];

for (const [schedule, problem] of problems)
  verifies('hosted.document', `the schedule ${JSON.stringify(schedule)} is ${problem ? 'refused' : 'accepted'}`, () => {
    const found = findScheduleProblem(schedule);
    if (problem === undefined) expect(found).toBeUndefined();
    else expect(found?.slice(0, problem.length)).toBe(problem);
  });

verifies('hosted.schedule', 'without a schedule a turn is due at once, and after each turn at its end', () => {
  expect(firstDue(undefined, T)).toEqual({ dueAt: T, through: T });
  const turn = { through: T, requestedAt: T + 5, endedAt: T + 9 };
  expect(dueAfterTurn(undefined, 'skip', turn, T)).toEqual({ dueAt: T + 9, through: T + 9 });
});

verifies('hosted.schedule', 'a delay counts from the end of the turn, and nothing is missed or overlaps', () => {
  const schedule = { delayMs: 500 };
  expect(firstDue(schedule, T)).toEqual({ dueAt: T, through: T });
  for (const overlap of ['skip', 'queue-one'] as const) {
    const turn = { through: T, requestedAt: T, endedAt: T + 90_000 };
    expect(dueAfterTurn(schedule, overlap, turn, T)).toEqual({ dueAt: T + 90_500, through: T + 90_500 });
  }
  for (const catchUp of ['none', 'one', 'all'] as const)
    expect(dueWhenLate(schedule, catchUp, { dueAt: T, through: T }, h(50))).toEqual({ dueAt: T, through: T });
});

verifies(
  'hosted.schedule',
  'an interval is due at the start and then at fixed distances, however long turns take',
  () => {
    expect(firstDue(hourly, T)).toEqual({ dueAt: T, through: T });
    const turn = { through: T, requestedAt: T + 3, endedAt: h(0.9) };
    expect(dueAfterTurn(hourly, 'skip', turn, T)).toEqual({ dueAt: h(1), through: h(1) });
  },
);

verifies('hosted.schedule', 'the first turn of a cron expression is due at its first match after the start', () => {
  const schedule = { cron: '0 12 * * *', zone: 'UTC' };
  const noon = Date.UTC(2026, 0, 1, 12);
  expect(firstDue(schedule, noon - 1)).toEqual({ dueAt: noon, through: noon });
  expect(firstDue(schedule, noon)?.dueAt).toBe(noon + 24 * HOUR);
});

verifies('hosted.schedule', 'skip: due times at which the turn was open are dropped and reported', () => {
  const turn = { through: T, requestedAt: T, endedAt: h(3) };
  const skipped = { from: h(1), until: h(3), why: 'overlap' };
  expect(dueAfterTurn(hourly, 'skip', turn, T)).toEqual({ dueAt: h(4), through: h(4), skipped });
});

verifies('hosted.schedule', 'queue-one: one turn is due for all due times at which the turn was open', () => {
  const queued = dueAfterTurn(hourly, 'queue-one', { through: T, requestedAt: T, endedAt: h(3) }, T);
  expect(queued).toEqual({ dueAt: h(1), through: h(3) });
  const turn = { through: h(3), requestedAt: h(3), endedAt: h(3.5) };
  expect(dueAfterTurn(hourly, 'queue-one', turn, T)).toEqual({ dueAt: h(4), through: h(4) });
});

verifies('hosted.schedule', 'queue-one: the queued turn is not late when the turn before it ends', () => {
  for (const catchUp of ['none', 'one', 'all'] as const)
    expect(dueWhenLate(hourly, catchUp, { dueAt: h(1), through: h(2.99) }, h(2.99))).toEqual({
      dueAt: h(1),
      through: h(2.99),
    });
});

verifies('hosted.schedule', 'one: a single turn runs for all missed due times', () => {
  const plan = dueWhenLate(hourly, 'one', { dueAt: h(1), through: h(1) }, h(9.5));
  expect(plan).toEqual({ dueAt: h(1), through: h(9.5) });
  const turn = { through: h(9.5), requestedAt: h(9.5), endedAt: h(9.6) };
  expect(dueAfterTurn(hourly, 'skip', turn, T)).toEqual({ dueAt: h(10), through: h(10) });
});

verifies('hosted.schedule', 'all: one turn runs for each missed due time, in order, and none of them overlaps', () => {
  const due: number[] = [];
  let plan: DuePlan | undefined = { dueAt: h(1), through: h(1) };
  let now = h(4.5);
  while (plan !== undefined && plan.dueAt <= now) {
    const run: DuePlan | undefined = dueWhenLate(hourly, 'all', plan, now);
    due.push(run?.dueAt ?? Number.NaN);
    plan = dueAfterTurn(hourly, 'skip', { through: plan.through, requestedAt: now, endedAt: now + 1000 }, T);
    now += 1000;
  }
  expect(due).toEqual([h(1), h(2), h(3), h(4)]);
  expect(plan).toEqual({ dueAt: h(5), through: h(5) });
});

verifies('hosted.schedule', 'none: a missed due time is dropped and reported, and the next one is planned', () => {
  const skipped = { from: h(1), until: h(3.5), why: 'missed' };
  const plan = dueWhenLate(hourly, 'none', { dueAt: h(1), through: h(1) }, h(3.5));
  expect(plan).toEqual({ dueAt: h(4), through: h(4), skipped });
});

verifies('hosted.schedule', 'none: a turn runs up to a minute late, or half the distance to the next due time', () => {
  const isRun = (schedule: HostedSchedule, dueAt: number, lateMs: number): boolean => {
    const plan = dueWhenLate(schedule, 'none', { dueAt, through: dueAt }, dueAt + lateMs);
    return plan?.dueAt === dueAt;
  };
  const noon = Date.UTC(2026, 0, 1, 12);
  const cases: readonly [HostedSchedule, number, number][] = [
    [hourly, h(1), 60_000],
    [{ everyMs: 10_000 }, T, 5_000],
    [{ cron: '0 12 * * *', zone: 'UTC' }, noon, 60_000],
    [{ cron: '*/30 * * * * *', zone: 'UTC' }, noon, 15_000],
  ];
  for (const [schedule, dueAt, limit] of cases) {
    expect(isRun(schedule, dueAt, limit)).toBe(true);
    expect(isRun(schedule, dueAt, limit + 1)).toBe(false);
  }
});

verifies('hosted.schedule', 'a clock that is set back starts no turn early and repeats none', () => {
  for (const catchUp of ['none', 'one', 'all'] as const)
    expect(dueWhenLate(hourly, catchUp, { dueAt: h(5), through: h(5) }, h(3))).toEqual({ dueAt: h(5), through: h(5) });
  for (const overlap of ['skip', 'queue-one'] as const) {
    const turn = { through: h(5), requestedAt: h(5.1), endedAt: h(1) };
    expect(dueAfterTurn(hourly, overlap, turn, T)).toEqual({ dueAt: h(6), through: h(6) });
  }
});

verifies('hosted.schedule', 'a turn that the schedule did not cause leaves the pending due time in place', () => {
  const daily = { cron: '0 12 * * *', zone: 'UTC' };
  const noon = Date.UTC(2026, 0, 1, 12);
  for (const [schedule, dueAt] of [
    [hourly, T],
    [hourly, h(4)],
    [daily, noon],
  ] as const) {
    const through = dueAt - 1;
    const turn = { through, requestedAt: dueAt - 500, endedAt: dueAt - 100 };
    expect(dueAfterTurn(schedule, 'skip', turn, T)).toEqual({ dueAt, through: dueAt });
    const open = { through, requestedAt: dueAt - 500, endedAt: dueAt + 100 };
    expect(dueAfterTurn(schedule, 'queue-one', open, T)).toEqual({ dueAt, through: dueAt + 100 });
    expect(dueAfterTurn(schedule, 'skip', open, T)?.skipped).toEqual({
      from: dueAt,
      until: dueAt + 100,
      why: 'overlap',
    });
  }
});

verifies('hosted.schedule', 'an expression without a further match plans no turn', () => {
  const schedule = { cron: '0 0 1 1 *', zone: 'UTC' };
  const last = Date.UTC(2999, 0, 1);
  expect(firstDue(schedule, last)).toBeUndefined();
  const turn = { through: last, requestedAt: last, endedAt: last + 1 };
  expect(dueAfterTurn(schedule, 'skip', turn, 0)).toBeUndefined();
  expect(dueWhenLate(schedule, 'none', { dueAt: last, through: last }, last + HOUR)).toBeUndefined();
});

const schedules: readonly (CronSchedule | IntervalSchedule)[] = [
  { everyMs: 1000 },
  { everyMs: 97_123 },
  hourly,
  { cron: '*/7 * * * * *', zone: 'UTC' },
  { cron: '*/15 * * * *', zone: 'Australia/Lord_Howe' },
  { cron: '30 2 * * *', zone: 'Europe/Berlin' },
  { cron: '0 9-17/4 * * MON-FRI', zone: 'America/New_York' },
];

/** What happened to the due times of a period. */
interface Dealt {
  readonly from: number;
  readonly until: number;
  readonly how: 'run' | 'overlap' | 'missed';
}

/** What happens around one turn, in milliseconds; `clockBackMs` sets the clock back before the turn is decided on. */
interface Step {
  readonly lateMs: number;
  readonly durationMs: number;
  readonly clockBackMs: number;
}

interface Simulation {
  readonly schedule: CronSchedule | IntervalSchedule;
  readonly overlap: OverlapRule;
  readonly catchUp: CatchUpRule;
  readonly startedAt: number;
  readonly steps: readonly Step[];
}

/** Runs turns as a worker does, and returns what became of the due times. Throws if a turn is early. */
function simulate({ schedule, overlap, catchUp, startedAt, steps }: Simulation): Dealt[] {
  const dealt: Dealt[] = [];
  const drop = (plan: DuePlan | undefined): DuePlan => {
    if (plan === undefined) throw new Error('no turn is due');
    if (plan.skipped) dealt.push({ ...plan.skipped, how: plan.skipped.why });
    return plan;
  };
  let plan = drop(firstDue(schedule, startedAt));
  let now = startedAt;
  for (const { lateMs, durationMs, clockBackMs } of steps) {
    now = Math.max(now, plan.dueAt) + lateMs - clockBackMs;
    const decided = drop(dueWhenLate(schedule, catchUp, plan, now));
    plan = decided;
    if (decided.dueAt > now) continue;
    const { dueAt, through } = decided;
    dealt.push({ from: dueAt, until: through, how: 'run' });
    const endedAt = now + durationMs;
    plan = drop(dueAfterTurn(schedule, overlap, { through, requestedAt: now, endedAt }, startedAt));
    now = endedAt;
  }
  return dealt;
}

const periodMs = fc.oneof(fc.constant(0), fc.nat(2000), fc.nat(2 * HOUR), fc.nat(4 * 24 * HOUR));
const simulation: fc.Arbitrary<Simulation> = fc.record({
  schedule: fc.constantFrom(...schedules),
  overlap: fc.constantFrom<OverlapRule>('skip', 'queue-one'),
  catchUp: fc.constantFrom<CatchUpRule>('none', 'one', 'all'),
  startedAt: fc.integer({ min: Date.UTC(2026, 0, 1), max: Date.UTC(2026, 11, 31) }),
  steps: fc.array(
    fc.record({
      lateMs: periodMs,
      durationMs: periodMs,
      clockBackMs: fc.oneof({ weight: 4, arbitrary: fc.constant(0) }, periodMs),
    }),
    { minLength: 1, maxLength: 12 },
  ),
});

verifies('hosted.schedule', 'every due time is run or dropped exactly once and in order, whatever happens', () => {
  const property = fc.property(simulation, (each) => {
    const { schedule, startedAt } = each;
    let expected = firstDue(schedule, startedAt)?.dueAt;
    for (const { from, until } of simulate(each)) {
      expect(from).toBe(expected);
      expect(until).toBeGreaterThanOrEqual(from);
      expected = nextDueTime(schedule, until, startedAt);
    }
  });
  fc.assert(property, { numRuns: 500 });
});

verifies('hosted.schedule', 'due times are dropped only for the reasons that the document names', () => {
  const property = fc.property(simulation, (each) => {
    const { schedule, startedAt, overlap, catchUp } = each;
    const dealt = simulate(each);
    const hows = new Set(dealt.map(({ how }) => how));
    if (overlap === 'queue-one') expect(hows).not.toContain('overlap');
    if (catchUp !== 'none') expect(hows).not.toContain('missed');
    if (overlap !== 'skip' || catchUp !== 'all') return;
    for (const { from, until, how } of dealt)
      if (how === 'run') expect(nextDueTime(schedule, from, startedAt)).toBeGreaterThan(until);
  });
  fc.assert(property, { numRuns: 300 });
});

verifies('hosted.schedule', 'a decision costs the same after one turn and after years of turns or of downtime', () => {
  const cron = { cron: '* * * * *', zone: 'Europe/Berlin' };
  const start = Date.UTC(2026, 0, 1);
  const decide = (schedule: HostedSchedule, later: number): void => {
    const dueAt = start + later;
    dueWhenLate(schedule, 'none', { dueAt: start, through: start }, dueAt);
    dueAfterTurn(schedule, 'skip', { through: start, requestedAt: start, endedAt: dueAt }, start);
    dueAfterTurn(schedule, 'skip', { through: dueAt, requestedAt: dueAt, endedAt: dueAt + 1 }, start);
  };
  const fastestMs = (schedule: HostedSchedule, later: number): number => {
    const durations = Array.from({ length: 20 }, () => {
      const before = performance.now();
      for (let i = 0; i < 10; i++) decide(schedule, later);
      return performance.now() - before;
    });
    return Math.min(...durations);
  };
  for (const schedule of [cron, { everyMs: 60_000 }]) {
    const near = Math.max(fastestMs(schedule, 120_000), 0.05);
    // Ten years have five million due times: a walk over them would take thousands of times as long.
    expect(fastestMs(schedule, 3650 * 24 * HOUR)).toBeLessThan(20 * near);
  }
});
