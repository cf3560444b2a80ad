// Random deliveries: signals in random order, with repetitions and crashes, are each received exactly once.

import { expect } from 'vitest';
import { seededRandom } from '../../src/adapters/system/seeded-ids.js';
import { Fault, LoopError } from '../../src/base/errors.js';
import type { Session } from '../../src/kernel/session.js';
import type { Scope, SignalType } from '../../src/protocol/body.js';
import type { RunOutcome, Signal } from '../../src/protocol/session.js';
import { crashingStore } from '../../src/testing/crashing-store.js';
import { auditJournal } from '../support/journal-audit.js';
import { type KernelFixture, kernelFixture, run, tick } from '../support/kernel-probe.js';
import { verifies } from '../verifies.js';

const SEEDS = 40;
const PER_KIND = 8;

/** A signal whose payload is its number; other payloads are invalid. */
const numbered: SignalType<number> = {
  name: 'x',
  schema: { type: 'integer' },
  validate: (value) => {
    if (typeof value === 'number') return value;
    throw new LoopError('INPUT_VALIDATION_FAILED', 'It is not a number.');
  },
};

/** Returns signals for `t1`, for `t2` and for any root, some with invalid payloads for `t1`, in random order. */
function randomSignals(random: () => number): Signal[] {
  const signals: Signal[] = [];
  for (let n = 0; n < PER_KIND; n++) {
    signals.push({ id: `t1 ${n}`, name: 'x', value: n, turn: 't1' });
    signals.push({ id: `any ${n}`, name: 'x', value: 100 + n });
    signals.push({ id: `t2 ${n}`, name: 'x', value: 200 + n, turn: 't2' });
    if (random() < 0.5) signals.push({ id: `wrong ${n}`, name: 'x', value: 'wrong', turn: 't1' });
  }
  return signals
    .map((signal) => ({ signal, order: random() }))
    .sort((a, b) => a.order - b.order)
    .map(({ signal }) => signal);
}

/** Receives `count` signals, some of them in races that may lose them to a timer. */
const receive =
  (count: number, random: (step: number) => boolean) =>
  async (scope: Scope): Promise<number[]> => {
    const received: number[] = [];
    for (let step = 0; received.length < count; step++) {
      const value = random(step)
        ? await scope.race([(r) => r.wait(numbered), (r) => r.sleep(3).then(() => null)])
        : await scope.wait(numbered);
      if (value !== null) received.push(value);
    }
    return received;
  };

class Deliveries {
  private readonly fixture: KernelFixture;
  private readonly random: () => number;
  private readonly unsent: Signal[];
  private readonly sent: Signal[] = [];
  crashes = 0;

  constructor(fixture: KernelFixture, random: () => number) {
    this.fixture = fixture;
    this.random = random;
    this.unsent = randomSignals(random);
  }

  /** Runs a root to its end, in as many sessions as it takes, while signals are sent. */
  async runToEnd(root: string, body: (scope: Scope) => Promise<unknown>): Promise<RunOutcome> {
    for (let round = 0; round < 500; round++) {
      const appendNumber = 1 + Math.floor(this.random() * 12);
      const when = this.random() < 0.5 ? 'before' : 'after';
      const session = await this.fixture.open({ store: crashingStore(this.fixture.store, { appendNumber, when }) });
      try {
        const running = run(session, body, root);
        running.catch(() => {});
        await this.sendSome(session);
        await this.fixture.clock.advance(2);
        const outcome = await running;
        if (outcome.status !== 'paused') return outcome;
      } catch (thrown) {
        if (!(thrown instanceof Fault)) throw thrown;
        this.crashes += 1;
      }
    }
    throw new Error(`${root} did not end: a signal was lost.`);
  }

  /** Sends some signals, and some that were sent before. A signal whose delivery failed is sent again later. */
  private async sendSome(session: Session): Promise<void> {
    for (let n = Math.floor(this.random() * 5); n > 0; n--) {
      const isRepeated = this.random() < 0.3 && this.sent.length > 0;
      const signal = isRepeated ? this.sent[Math.floor(this.random() * this.sent.length)] : this.unsent.at(0);
      if (signal === undefined) continue;
      const isNew = await session.signal(signal).catch((thrown) => {
        // An invalid payload for a root that has its valid ones.
        if (thrown instanceof LoopError && thrown.code === 'TURN_ENDED' && signal.value === 'wrong') return !isRepeated;
        throw thrown;
      });
      if (isRepeated && isNew) throw new Error(`${signal.id} was accepted twice.`);
      if (!isRepeated) this.sent.push(...this.unsent.splice(0, 1));
      if (this.random() < 0.5) await tick();
    }
  }
}

verifies(
  'kernel.signal',
  'signals in random order, repeated and across crashes, are each received exactly once',
  async () => {
    let crashes = 0;
    for (let seed = 1; seed <= SEEDS; seed++) {
      const random = seededRandom(seed);
      const fixture = kernelFixture();
      const deliveries = new Deliveries(fixture, random);
      const races = Array.from({ length: 2000 }, () => random() < 0.4);
      const isRace = (step: number): boolean => races[step] === true;
      const first = await deliveries.runToEnd('t1', receive(2 * PER_KIND, isRace));
      const second = await deliveries.runToEnd('t2', receive(PER_KIND, isRace));
      const numbers = Array.from({ length: PER_KIND }, (_, n) => n);
      const sorted = (outcome: RunOutcome): unknown =>
        outcome.status === 'ok' ? (outcome.output as number[]).toSorted((a, b) => a - b) : outcome;
      expect(sorted(first), `seed ${seed}`).toEqual([...numbers, ...numbers.map((n) => 100 + n)]);
      expect(sorted(second), `seed ${seed}`).toEqual(numbers.map((n) => 200 + n));
      // A signal that a losing branch returned is received by two waits, of which only one counts.
      const violations = auditJournal(await fixture.entries(), `seed ${seed}`);
      expect(violations.filter((violation) => !violation.endsWith('received twice'))).toEqual([]);
      crashes += deliveries.crashes;
    }
    expect(crashes, 'too few crashes for a test').toBeGreaterThan(SEEDS);
  },
  120_000,
);
