/**
 * Counts the recorded answers per model. A scripted model, which gives prepared answers in order, uses the count to
 * continue after a restart.
 */
import { leafEffectKey } from '../journal/leaf-entries.js';
import type { Entry } from '../protocol/entry.js';
import { isKeyOfTurn, withoutRetrySuffix } from './turns.js';

interface Counter {
  session: number;
  turn: number;
}

/** Counts the answers of each model, in one turn and in its whole session; failed calls count too. */
export class ModelAnswerCounter {
  private readonly turnId: string;
  /** The counters of requests without an answer, by effect key. */
  private pendingRequests: Map<string, Counter> | undefined;
  /** By provider id, then by model name. */
  private counters: Map<string, Map<string, Counter>> | undefined;

  /** `entries` are those of the session so far. */
  constructor(turnId: string, entries: readonly Entry[]) {
    this.turnId = turnId;
    for (const entry of entries) this.apply(entry);
  }

  /** Applies the next entry. */
  apply(entry: Entry): void {
    const { type, key } = entry;
    // The parts of a leaf call, without creating them.
    if (type === 'call.started') {
      if (entry.kind === 'model') this.trackRequest(leafEffectKey(key), entry, entry.effectName ?? entry.name);
    } else if (type === 'effect.requested') {
      if (entry.kind === 'model') this.trackRequest(withoutRetrySuffix(key), entry, entry.name);
    } else if (this.pendingRequests === undefined) return;
    else if (entry.endsEffect !== undefined) this.countAnswer(leafEffectKey(key));
    else if (type === 'effect.returned' || type === 'effect.failed') this.countAnswer(key);
  }

  /** Returns the number of recorded answers of a model. */
  count(providerId: string, model: string, by: 'turn' | 'session'): number {
    return this.counters?.get(providerId)?.get(model)?.[by] ?? 0;
  }

  private trackRequest(key: string, { value }: Entry, name = ''): void {
    this.pendingRequests ??= new Map();
    this.pendingRequests.set(
      key,
      this.counterFor(name, (value as { readonly model?: string } | undefined)?.model ?? ''),
    );
  }

  private countAnswer(key: string): void {
    const counter = this.pendingRequests?.get(key);
    if (counter === undefined) return;
    this.pendingRequests?.delete(key);
    counter.session += 1;
    if (isKeyOfTurn(key, this.turnId)) counter.turn += 1;
  }

  private counterFor(providerId: string, model: string): Counter {
    this.counters ??= new Map();
    const models = this.counters.get(providerId) ?? new Map<string, Counter>();
    this.counters.set(providerId, models);
    const counter = models.get(model) ?? { session: 0, turn: 0 };
    models.set(model, counter);
    return counter;
  }
}
