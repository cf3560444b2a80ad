/**
 * What a session remembers of its own folding, so that opening it need not read everything. A cache: it can be deleted,
 * one of another past is ignored, and the heavier it is the rarer it is made.
 */

import { snapshot, weighed } from '../json/value.js';
import type { Entry } from '../protocol/entry.js';
import type { Json } from '../protocol/json.js';
import type { Reader } from './reader.js';
import { digest } from './record.js';
import { Standing } from './standing.js';
import type { Store } from './store.js';
import { type Upcasts, upcast } from './upcast.js';
import type { Folds } from './view.js';
import type { Writer } from './writer.js';

const EVERY = 1000;
/** Bytes of a snapshot for each entry since the last one. */
const SHARE = 64;

interface Parts {
  readonly session: string;
  readonly store: Store;
  readonly upcasts: Upcasts;
  readonly folds: Folds;
  readonly standing: Standing;
  readonly writer: Writer;
}

export class Recollection {
  private readonly parts: Parts;
  private at = 0;
  private every = EVERY;

  constructor(parts: Parts) {
    this.parts = parts;
  }

  /** Whether enough was written since the last one. */
  get due(): boolean {
    return this.parts.writer.next - this.at >= this.every;
  }

  /** Takes over a snapshot if it is one of this very past; returns where folding goes on. */
  async restore(next: number, reader: Reader): Promise<number> {
    const { session, store, folds, standing, upcasts } = this.parts;
    const saved = await store.snapshots.load(session);
    if (saved === undefined || saved.next > next || saved.next === 0) return 0;
    // guard: snapshot-matches-journal
    if (tailOf(await reader.at(saved.next - 1)) !== saved.tail) return 0;
    try {
      const state = saved.state as { standing: Json; views: { [view: string]: Json } };
      const kept = Standing.parse(state.standing, (entry) => upcast(entry, upcasts));
      if (!folds.restore(state.views)) return 0;
      standing.take(kept);
    } catch {
      return 0;
    }
    this.at = saved.next;
    return saved.next;
  }

  async save(): Promise<void> {
    const { session, store, folds, standing, writer } = this.parts;
    const { next, last } = writer;
    if (last === undefined || !standing.quiet) return;
    this.at = next;
    try {
      const state = snapshot({ standing: standing.save(), views: folds.save() }, 'a snapshot') as Json;
      // The heavier it is, the more entries share its price: the cost of an entry stays flat, however old the session.
      // guard: snapshot-interval-grows
      this.every = Math.max(EVERY, weighed() / SHARE);
      await store.snapshots.save(session, { next, tail: tailOf(last), state });
    } catch {
      // A cache that cannot be kept is done without; if the store itself failed, the next append tells.
    }
  }
}

function tailOf({ seq, type, key, at }: Entry): string {
  return digest(`${seq}\n${at}\n${type}\n${key}`);
}
