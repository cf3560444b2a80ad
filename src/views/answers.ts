/** How many answers of each model a turn has recorded: where a scripted model goes on after a restart. */
import type { Entry } from '../protocol/entry.js';

interface Counter {
  count: number;
}

export class Answers {
  private asked: Map<string, Counter> | undefined;
  /** By backend, then by model. */
  private counters: Map<string, Map<string, Counter>> | undefined;

  apply(entry: Entry): void {
    const { type, key } = entry;
    if (type === 'effect.requested' && entry.kind === 'model') this.ask(key, entry);
    else if (this.asked !== undefined && (type === 'effect.returned' || type === 'effect.failed')) this.answer(key);
  }

  count(backendId: string, model: string): number {
    return this.counters?.get(backendId)?.get(model)?.count ?? 0;
  }

  private ask(key: string, { name = '', value }: Entry): void {
    this.asked ??= new Map();
    this.asked.set(key, this.counter(name, (value as { readonly model?: string } | undefined)?.model ?? ''));
  }

  private answer(key: string): void {
    const counter = this.asked?.get(key);
    if (counter === undefined) return;
    this.asked?.delete(key);
    counter.count += 1;
  }

  private counter(backendId: string, model: string): Counter {
    this.counters ??= new Map();
    const models = this.counters.get(backendId) ?? new Map<string, Counter>();
    this.counters.set(backendId, models);
    const counter = models.get(model) ?? { count: 0 };
    models.set(model, counter);
    return counter;
  }
}
