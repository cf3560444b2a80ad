/** How many answers of each model a turn has recorded: where a scripted model goes on after a restart. */
import type { Entry } from '../protocol/entry.js';

interface Counter {
  count: number;
}

export class ModelAnswerCounter {
  private pendingRequests: Map<string, Counter> | undefined;
  /** By backend, then by model. */
  private counters: Map<string, Map<string, Counter>> | undefined;

  apply(entry: Entry): void {
    const { type, key } = entry;
    if (type === 'effect.requested' && entry.kind === 'model') this.trackRequest(key, entry);
    else if (this.pendingRequests !== undefined && (type === 'effect.returned' || type === 'effect.failed'))
      this.countAnswer(key);
  }

  count(backendId: string, model: string): number {
    return this.counters?.get(backendId)?.get(model)?.count ?? 0;
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

  private counterFor(backendId: string, model: string): Counter {
    this.counters ??= new Map();
    const models = this.counters.get(backendId) ?? new Map<string, Counter>();
    this.counters.set(backendId, models);
    const counter = models.get(model) ?? { count: 0 };
    models.set(model, counter);
    return counter;
  }
}
