/**
 * The entries at which a turn can be forked: it is open there, every effect that changes something outside has ended, and
 * so has every effect whose approval is answered. An effect without a recorded end may have happened in the original; a
 * fork would repeat it under another idempotency key. An answer counts once; in a fork it would count again.
 */
import { expandLeaf } from '../journal/leaf-entries.js';
import type { Entry } from '../protocol/entry.js';
import { AnsweredEffects } from './answered-effects.js';
import { isKeyOfTurn } from './turns.js';

/** Folds the entries of a session for one of its turns. */
class ForkPointFinder {
  readonly points: number[] = [];
  private isOpen = false;
  /** The keys of the non-pure effects of the turn without a recorded end. */
  private readonly intents = new Set<string>();
  /** Those in branches that lost a race: a replay never enters them, unless a retry reopens the race. */
  private readonly lostIntents = new Set<string>();
  private readonly answers = new AnsweredEffects();
  private readonly turnId: string;

  constructor(turnId: string) {
    this.turnId = turnId;
  }

  apply(entry: Entry): void {
    const { key, seq, type } = entry;
    if (type === 'signal.received') this.answers.apply(entry);
    else if (isKeyOfTurn(key, this.turnId))
      for (const part of expandLeaf(entry) ?? [entry]) {
        this.applyStep(part);
        this.answers.apply(part);
      }
    if (!this.isOpen) return;
    // guard: fork-leaves-no-unused-answer
    if (this.answers.hasUnused) return;
    // guard: fork-leaves-no-open-intent
    if (this.intents.size === 0) this.points.push(seq);
  }

  private applyStep({ key, type, safety }: Entry): void {
    const effectKey = key.split('~', 1)[0] ?? key;
    if (type === 'effect.requested' && safety !== 'pure') this.intents.add(effectKey);
    else if (type === 'effect.returned' || type === 'effect.failed') this.intents.delete(effectKey);
    else if (type === 'race.won') this.moveIntents(key);
    else if (key === this.turnId) this.applyRoot(type);
  }

  private applyRoot(type: string): void {
    if (type === 'call.started') this.isOpen = true;
    else if (type === 'call.completed' || type === 'call.errored') this.isOpen = false;
    else if (type === 'call.reopened') {
      this.isOpen = true;
      for (const key of this.lostIntents) this.intents.add(key);
    }
  }

  private moveIntents(race: string): void {
    for (const key of this.intents) {
      if (!key.startsWith(`${race}/`)) continue;
      this.intents.delete(key);
      this.lostIntents.add(key);
    }
  }
}

/** Returns the sequence numbers at which a turn can be forked, in ascending order. `entries` are those of its session. */
export function forkPointsOf(turnId: string, entries: readonly Entry[]): readonly number[] {
  const finder = new ForkPointFinder(turnId);
  for (const entry of entries) finder.apply(entry);
  return finder.points;
}

/** Returns the number of a sorted list that is nearest to `seq`, the smaller of two; undefined for an empty list. */
export function nearestPoint(points: readonly number[], seq: number): number | undefined {
  let nearest: number | undefined;
  for (const point of points)
    if (nearest === undefined || Math.abs(point - seq) < Math.abs(nearest - seq)) nearest = point;
  return nearest;
}
