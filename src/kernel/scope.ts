/**
 * The scope: all that a body may use of the world. Each step gets the next key under the scope's own, so a body that
 * runs again asks for the same keys in the same order and finds what it already did. A scope is a straight line: one
 * step at a time; what runs side by side gets a scope of its own, through `all` or `race`.
 */
import type { Entry } from '../protocol/entry.js';
import type { Json } from '../protocol/json.js';
import { stall } from './attempt.js';
import { type Loop, runCall } from './call.js';
import { attemptEffect, type Effect } from './effect.js';
import { LoopError, outcomeOf } from './errors.js';
import { joinAll, raceFirst, type Start } from './group.js';
import { throughLayers } from './layer.js';
import type { Lifetime } from './lifetime.js';
import type { Trodden } from './past.js';
import type { Run } from './run.js';

/** A body without a name: one line of an `all` or a `race`. */
export type Branch<O> = (scope: Scope) => Promise<O> | O;

export class Scope {
  /** This scope's path: the key of its call, or of its branch. */
  readonly key: string;
  readonly depth: number;
  private readonly run: Run;
  private readonly life: Lifetime;
  private readonly past: Trodden | undefined;
  private next = 0;
  private busy = false;

  constructor(run: Run, key: string, life: Lifetime, past: Trodden | undefined, depth: number) {
    this.run = run;
    this.key = key;
    this.life = life;
    this.past = past;
    this.depth = depth;
  }

  /** Invokes a loop; its result is recorded under this step. */
  call<I, O>(loop: Loop<I, O>, input: I): Promise<O> {
    if (this.busy) return Promise.reject(this.tangled('another step was started'));
    if (this.run.over) return stall();
    const index = this.enter();
    const key = `${this.key}/${index}`;
    const site = { key, life: this.life, seen: this.past?.take(index), depth: this.depth + 1, caller: this };
    return runCall(this.run, site, loop, input) as Promise<O>;
  }

  /** Does something outside the run, through the session's layers. */
  effect<O>(effect: Effect<O>): Promise<O> {
    return this.step((key, seen) => this.throughEffect(key, seen, effect)) as Promise<O>;
  }

  /** Runs branches side by side and waits for all; if some failed, throws what the first of them (by place) threw. */
  all<O>(branches: readonly Branch<O>[]): Promise<O[]> {
    return this.step((key, seen) => joinAll(this.run, this.life, key, seen, this.starts(branches, key, seen)));
  }

  /** Runs branches side by side until one ends; the others are cancelled. The winner is recorded. */
  race<O>(branches: readonly Branch<O>[]): Promise<O> {
    return this.step((key, seen) =>
      raceFirst(this.run, this.life, key, seen, this.starts(branches, key, seen)),
    ) as Promise<O>;
  }

  /** Waits for a length of time, across restarts; never shorter. */
  sleep(ms: number): Promise<void> {
    return this.step((key, seen) => this.throughTimer(key, seen, ms));
  }

  /** Waits for a signal from outside and returns its value. Signals that came earlier are kept and taken in order. */
  wait(name: string): Promise<Json | undefined> {
    return this.step((key, seen) => this.throughWait(key, seen, name));
  }

  /** Records a fact of a type of one's own, made once: a body that runs again gets what was recorded. */
  record<V extends Json>(type: string, make: () => V): Promise<V> {
    return this.step(async (key, seen) => {
      if (seen !== undefined) {
        if (seen.close?.type !== type) return this.run.mismatch(key, seen.witness, { type });
        return (await this.run.recall(seen.close)) as V;
      }
      this.life.check();
      const value = make();
      this.run.writer.propose({ seq: 0, at: 0, type, key, value });
      return value;
    });
  }

  now(): Promise<number> {
    return this.record('time.read', () => this.run.parts.clock.now());
  }

  random(): Promise<number> {
    return this.record('number.drawn', () => this.run.parts.ids.random());
  }

  /** Refuses to end while a step still runs, or while the journal holds steps that were not asked for. */
  close(): Promise<never> | undefined {
    if (this.busy) throw this.tangled('the body ended');
    const untaken = this.past?.untaken;
    if (untaken === undefined || this.life.reason !== undefined) return undefined;
    return this.run.mismatch(this.key, untaken.witness, undefined);
  }

  /** The step that ran has ended: the next one may start. */
  leave(): void {
    this.busy = false;
  }

  private enter(): number {
    this.busy = true;
    return this.next++;
  }

  private tangled(what: string): LoopError {
    return new LoopError(
      'SCOPE_BUSY',
      `In ${this.key}, ${what} while step ${this.next - 1} was still running. Await each step; for steps side by side use scope.all or scope.race.`,
      { key: this.key },
    );
  }

  private async step<T>(work: (key: string, seen: Trodden | undefined) => Promise<T>): Promise<T> {
    if (this.busy) throw this.tangled('another step was started');
    if (this.run.over) return stall();
    const index = this.enter();
    try {
      return await work(`${this.key}/${index}`, this.past?.take(index));
    } finally {
      this.leave();
    }
  }

  private starts<O>(branches: readonly Branch<O>[], key: string, seen: Trodden | undefined): Start<O>[] {
    return branches.map((branch, i) => async (life) => {
      const scope = new Scope(this.run, `${key}/${i}`, life, seen?.take(i), this.depth);
      const value = await branch(scope);
      const untidy = scope.close();
      if (untidy !== undefined) await untidy;
      return value;
    });
  }

  private async throughEffect(key: string, seen: Trodden | undefined, effect: Effect): Promise<unknown> {
    const { kind, name, safety, input } = effect;
    const { layers } = this.run.parts;
    const layered = seen?.open === undefined ? layers.length > 0 : seen.open.type === 'effect.asked';
    const type = layered ? 'effect.asked' : 'effect.requested';
    if (seen !== undefined) await this.run.expect(key, seen, { type, kind, name, value: input });
    if (!layered) return attemptEffect(this.run, this.life, key, effect, seen);
    if (seen?.close !== undefined) return this.run.recall(seen.close);
    if (seen === undefined) {
      this.life.check();
      this.run.writer.propose({ seq: 0, at: 0, type, key, kind, name, safety, value: input as Json });
    }
    const scope = new Scope(this.run, key, this.life, seen, this.depth);
    return this.settle(key, scope, effect);
  }

  /** Runs the layers and records what they made of the effect; a result they passed on unchanged is not stored again. */
  private async settle(key: string, scope: Scope, effect: Effect): Promise<unknown> {
    let last: { key: string; value: unknown } | undefined;
    const innermost = (current: Effect): Promise<unknown> =>
      scope.step(async (attemptKey, seen) => {
        const from = current === effect ? key : undefined;
        const value = await attemptEffect(this.run, this.life, attemptKey, current, seen, from);
        last = { key: attemptKey, value };
        return value;
      });
    const entry = { seq: 0, at: 0, type: 'effect.settled', key };
    try {
      const value = await throughLayers(this.run.parts.layers, effect, scope, innermost);
      if (this.life.lost || this.run.over) return value;
      const passed = last !== undefined && Object.is(last.value, value);
      this.run.writer.push(passed ? { ...entry, from: last?.key } : { ...entry, value: value as Json });
      return value;
    } catch (thrown) {
      if (this.life.reason !== undefined || this.run.over) throw thrown;
      const error = outcomeOf(thrown);
      this.run.writer.push({ ...entry, error: error.record() });
      throw error;
    }
  }

  private async throughTimer(key: string, seen: Trodden | undefined, ms: number): Promise<void> {
    if (!(ms >= 0 && Number.isFinite(ms))) {
      throw new LoopError('VALUE_INVALID', `Cannot sleep for ${ms} ms at ${key}.`, { key });
    }
    const { clock } = this.run.parts;
    if (seen !== undefined) await this.run.expect(key, seen, { type: 'timer.set', value: ms });
    if (seen?.close !== undefined) return;
    this.life.check();
    const until = seen?.open?.until ?? clock.now() + ms;
    if (seen === undefined) this.run.writer.propose({ seq: 0, at: 0, type: 'timer.set', key, until, value: ms });
    await this.run.writer.barrier();
    this.life.check();
    if (clock.now() < until) await this.parkUntil(key, until);
    this.run.writer.push({ seq: 0, at: 0, type: 'timer.fired', key });
  }

  private parkUntil(key: string, until: number): Promise<void> {
    return this.run.attempt.park<void>({ kind: 'timer', key, until }, this.life, (wake) => {
      const stop = new AbortController();
      this.run.parts.clock.sleep(until, stop.signal).then(wake, () => {});
      return () => stop.abort();
    });
  }

  private async throughWait(key: string, seen: Trodden | undefined, name: string): Promise<Json | undefined> {
    if (seen !== undefined) await this.run.expect(key, seen, { type: 'wait.opened', name });
    if (seen?.close !== undefined) return (await this.run.recall(seen.close)) as Json | undefined;
    this.life.check();
    if (seen === undefined) this.run.writer.propose({ seq: 0, at: 0, type: 'wait.opened', key, name });
    const take = (signal: Entry, value: Json | undefined): void =>
      this.run.note(this.run.writer.push({ seq: 0, at: 0, type: 'wait.settled', key, signal: signal.key, value }));
    const kept = this.run.parts.standing.takeSignal(name);
    if (kept !== undefined) {
      const value = (await this.run.recall(kept)) as Json | undefined;
      take(kept, value);
      return value;
    }
    const signal = await this.run.outside({ kind: 'signal', key, name }, this.life, `signal ${name}`, (fresh) =>
      take(fresh, fresh.value),
    );
    return signal.value;
  }
}
