/**
 * Counts the recorded answers per model. A scripted model, which gives prepared answers in order, uses the count to
 * continue after a restart.
 */
import { expandLeaf } from '../journal/leaf-entries.js';
import type { Entry } from '../protocol/entry.js';
import { withoutRetrySuffix } from './turns.js';

interface Counter {
  count: number;
}

/** Counts the answers of each model; failed calls count too. */
export class ModelAnswerCounter {
  /** The counters of requests without an answer, by effect key. */
  private pendingRequests: Map<string, Counter> | undefined;
  /** By provider id, then by model name. */
  private counters: Map<string, Map<string, Counter>> | undefined;

  /** Applies the next entry. */
  apply(entry: Entry): void {
    const parts = expandLeaf(entry);
    if (parts === undefined) this.applyEntry(entry);
    else for (const part of parts) this.applyEntry(part);
  }

  private applyEntry(entry: Entry): void {
    const { type, key } = entry;
    if (type === 'effect.requested' && entry.kind === 'model') this.trackRequest(withoutRetrySuffix(key), entry);
    else if (this.pendingRequests !== undefined && (type === 'effect.returned' || type === 'effect.failed'))
      this.countAnswer(key);
  }

  /** Returns the number of recorded answers of a model. */
  count(providerId: string, model: string): number {
    return this.counters?.get(providerId)?.get(model)?.count ?? 0;
  }

  private trackRequest(key: string, { name = '', value }: Entry): void {
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
    counter.count += 1;
  }

  private counterFor(providerId: string, model: string): Counter {
    this.counters ??= new Map();
    const models = this.counters.get(providerId) ?? new Map<string, Counter>();
    this.counters.set(providerId, models);
    const counter = models.get(model) ?? { count: 0 };
    models.set(model, counter);
    return counter;
  }
}
