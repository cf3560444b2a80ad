/** How many answers of each model a turn has recorded: where a scripted model goes on after a restart. */
import type { Entry } from '../protocol/entry.js';

export class Answers {
  private readonly asked = new Map<string, string>();
  private readonly counts = new Map<string, number>();

  apply({ type, key, kind, name = '', value }: Entry): void {
    if (type === 'effect.requested' && kind === 'model') {
      this.asked.set(key, nameOf(name, (value as { readonly model?: string } | undefined)?.model ?? ''));
    } else if (type === 'effect.returned' || type === 'effect.failed') {
      const model = this.asked.get(key);
      if (model !== undefined) this.counts.set(model, (this.counts.get(model) ?? 0) + 1);
      this.asked.delete(key);
    }
  }

  count(backendId: string, model: string): number {
    return this.counts.get(nameOf(backendId, model)) ?? 0;
  }
}

function nameOf(backendId: string, model: string): string {
  return `${backendId}\n${model}`;
}
