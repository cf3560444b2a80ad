/**
 * What every scope of one attempt shares: the writer, the attempt's strands, time, chance, and the way back to what
 * was recorded. It compares what the code asks for with what the journal holds, and stops the attempt when they differ.
 */

import { Fault, faultOf, LoopError } from '../base/errors.js';
import type { Clock, Ids } from '../journal/clock.js';
import { type Asked, described } from '../journal/describe.js';
import { fetchValue } from '../journal/fetch.js';
import type { Fresh } from '../journal/fresh.js';
import type { Trodden } from '../journal/past.js';
import type { Standing } from '../journal/standing.js';
import type { Blobs } from '../journal/store.js';
import type { Writer } from '../journal/writer.js';
import { copy, same, snapshot } from '../json/value.js';
import type { Effect } from '../protocol/body.js';
import type { Entry } from '../protocol/entry.js';
import type { Json } from '../protocol/json.js';
import { type Attempt, type Pending, stall } from './attempt.js';
import type { Layer } from './layer.js';
import type { Lifetime } from './lifetime.js';

/** Wakes those who wait for an outside fact: a signal by name, a decision by key. */
type Waiters = Map<string, Set<(entry: Entry) => void>>;

export interface RunParts {
  readonly session: string;
  readonly writer: Writer;
  readonly standing: Standing;
  /** Made when somebody waits: most sessions wait for nothing. */
  waiters: Waiters | undefined;
  readonly inFlight: Map<string, Promise<unknown>>;
  /** Results of effects that an earlier attempt began and that ended during this one. */
  landed: Map<string, Entry> | undefined;
  readonly blobs: Blobs;
  readonly clock: Clock;
  readonly ids: Ids;
  layersOf(effect: Effect, key: string): readonly Layer[];
  readonly maxDepth: number;
  readonly idle: boolean;
  readonly context: unknown;
}

/** One step of a scope: its key, the lifetime it is part of, and what an earlier process recorded of it. */
export interface Site {
  readonly key: string;
  readonly life: Lifetime;
  readonly seen: Trodden | undefined;
  /** How deep its scope is nested. */
  readonly depth: number;
}

/** What is asked for may be anything; only JSON can be what was recorded. */
function sameAs(recorded: Json | undefined, asked: unknown): boolean {
  try {
    return same(recorded, snapshot(asked, 'what is asked for'));
  } catch {
    return false;
  }
}

export function tooDeep(key: string, limit: number): LoopError {
  const place = key.length > 60 ? `${key.slice(0, 60)}…` : key;
  return new LoopError('DEPTH_EXCEEDED', `Calls are nested deeper than ${limit} at ${place}.`, { limit });
}

/** Never seen: whoever meets it stays where it is. */
const OVER = new Error('The attempt is over.');

export class Run {
  readonly parts: RunParts;
  readonly attempt: Attempt;
  readonly writer: Writer;

  constructor(parts: RunParts, attempt: Attempt) {
    this.parts = parts;
    this.attempt = attempt;
    this.writer = parts.writer;
  }

  /** No body of this attempt may move any more. */
  get over(): boolean {
    return this.attempt.over || this.writer.fault !== undefined;
  }

  /** Writes for this attempt. Once it is over nothing is written for it, and nothing for a branch that has lost. */
  push(life: Lifetime, entry: Fresh, weight?: number): Entry {
    // guard: ended-attempt-writes-nothing
    if (this.over) throw OVER;
    if (life.lost) life.check();
    return this.writer.push(entry, false, weight);
  }

  /** Writes what a step opens with. That an invariant refused it is recorded in its place, for a replay to find. */
  propose(life: Lifetime, entry: Fresh, weight?: number): Entry {
    if (this.over) throw OVER;
    life.check();
    try {
      return this.writer.propose(entry, weight);
    } catch (thrown) {
      // guard: invariant-refusal-recorded
      if (!(thrown instanceof LoopError) || thrown.code !== 'INVARIANT_VIOLATED') throw thrown;
      const { type, key, name, value } = entry;
      const refused = { seq: 0, at: 0, type: 'step.refused', key, name: type, value, error: thrown.record() };
      this.push(life, name === undefined ? refused : { ...refused, kind: name });
      throw thrown;
    }
  }

  /** Waits until all that was written is durable. By then the run may be over, or cancelled. */
  async barrier(life: Lifetime): Promise<void> {
    await this.writer.flushed();
    await this.goOn(life);
  }

  /** Waits for a store that is far behind. */
  async ease(life: Lifetime): Promise<void> {
    await this.writer.eased();
    await this.goOn(life);
  }

  private goOn(life: Lifetime): Promise<never> | undefined {
    if (this.over) return stall();
    life.check();
    return undefined;
  }

  note(entry: Entry): void {
    this.parts.standing.apply(entry);
  }

  follow(key: string, work: Promise<unknown>): void {
    const { inFlight } = this.parts;
    const done = (): boolean => inFlight.delete(key);
    inFlight.set(key, work);
    work.then(done, done);
  }

  /** A value as it was recorded, fetched from the blobs if it lies there. */
  async recall(entry: Entry): Promise<unknown> {
    if (entry.error !== undefined) throw LoopError.of(entry.error);
    return copy(await this.fetch(entry));
  }

  private async fetch(entry: Entry): Promise<Json | undefined> {
    try {
      return await fetchValue(this.parts.blobs, this.parts.session, entry);
    } catch (error) {
      this.attempt.fail(faultOf(error));
      return stall();
    }
  }

  /** The one rule: what a step opens with is written once, and asked again it must be the same. True if its end is recorded too. */
  async enter({ key, life, seen }: Site, opening: Fresh): Promise<boolean> {
    if (seen !== undefined) {
      await this.expect(key, seen, opening);
      return seen.close !== undefined;
    }
    this.propose(life, opening);
    if (this.writer.crowded) await this.ease(life);
    return false;
  }

  /** Stops the attempt unless the record is of what is asked for now. */
  async expect(key: string, seen: Trodden, asked: Asked): Promise<void> {
    const recorded = seen.open ?? seen.close;
    if (recorded === undefined) return this.mismatch(key, seen.witness, asked);
    const { error } = recorded;
    const refused = recorded.type === 'step.refused' && recorded.name === asked.type && recorded.kind === asked.name;
    if (refused && error !== undefined && sameAs(await this.fetch(recorded), asked.value)) throw LoopError.of(error);
    const { type, name, kind, version } = recorded;
    const alike = type === asked.type && name === asked.name && kind === asked.kind && version === asked.version;
    // guard: replayed-step-matches-record
    if (!alike) return this.mismatch(key, recorded, asked);
    const value = await this.fetch(recorded);
    // guard: replayed-input-matches-record
    if (!sameAs(value, asked.value)) return this.mismatch(key, { ...recorded, value }, asked);
  }

  mismatch(key: string, recorded: Entry | undefined, asked: Asked | undefined): Promise<never> {
    const held = described(recorded);
    const wanted = described(asked);
    const at = recorded === undefined || recorded.key === key ? key : `${key} (recorded under it: ${recorded.key})`;
    const message =
      `Session "${this.parts.session}", step ${at}: the journal holds ${held}, but the code asked for ${wanted}. ` +
      'Run the code that wrote this journal, or start a new session for the changed one.';
    this.attempt.fail(
      new Fault('REPLAY_MISMATCH', message, { session: this.parts.session, key, recorded: held, asked: wanted }),
    );
    return stall();
  }

  /** Signals that a lost branch gave back go to whoever waits for them by now. */
  redeliver(): void {
    for (const [waited, [waiter]] of this.parts.waiters ?? []) {
      const kept = waited.startsWith('signal ') ? this.parts.standing.kept(waited.slice('signal '.length)) : undefined;
      if (kept !== undefined) waiter?.(kept);
    }
  }

  /** Waits for an entry that comes from outside, under `name` among the waiters. */
  outside(pending: Pending, life: Lifetime, name: string, take: (entry: Entry) => void = () => {}): Promise<Entry> {
    return this.attempt.park<Entry>(pending, life, (wake) => {
      this.parts.waiters ??= new Map();
      const { waiters } = this.parts;
      const waiting = waiters.get(name) ?? new Set();
      const waiter = (entry: Entry): void => {
        take(entry);
        wake(entry);
      };
      waiters.set(name, waiting.add(waiter));
      return () => {
        waiting.delete(waiter);
        if (waiting.size === 0) waiters.delete(name);
      };
    });
  }
}
