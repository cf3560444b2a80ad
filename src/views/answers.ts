/** How many answers of each model a turn has recorded: where a scripted model goes on after a restart. */
import { compositeId } from '../base/identity.js';
import type { Entry } from '../protocol/entry.js';

export class Answers {
  private asked: Map<string, string> | undefined;
  private counts: Map<string, number> | undefined;

  apply(entry: Entry): void {
    const { type, key } = entry;
    if (type === 'effect.requested' && entry.kind === 'model') this.ask(key, entry);
    else if (this.asked !== undefined && (type === 'effect.returned' || type === 'effect.failed')) this.answer(key);
  }

  count(backendId: string, model: string): number {
    return this.counts?.get(compositeId(backendId, model)) ?? 0;
  }

  private ask(key: string, { name = '', value }: Entry): void {
    this.asked ??= new Map();
    this.asked.set(key, compositeId(name, (value as { readonly model?: string } | undefined)?.model ?? ''));
  }

  private answer(key: string): void {
    const model = this.asked?.get(key);
    if (model === undefined) return;
    this.asked?.delete(key);
    this.counts ??= new Map();
    this.counts.set(model, (this.counts.get(model) ?? 0) + 1);
  }
}
