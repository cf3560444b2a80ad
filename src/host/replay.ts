/**
 * Replaying a turn for the sake of looking: all its bodies run again over what was recorded, nothing is performed and
 * nothing is written. Ends of calls are hidden from the kernel, so that every body really runs, and held against what the
 * bodies come to now.
 */

import { Fault } from '../base/errors.js';
import type { Clock, Ids } from '../journal/clock.js';
import { singleProcessLeases } from '../journal/leases.js';
import type { Batch, Store } from '../journal/store.js';
import { jsonEquals } from '../json/value.js';
import { Session, type SessionOptions } from '../kernel/session.js';
import type { Loop } from '../protocol/body.js';
import type { Entry } from '../protocol/entry.js';
import type { Json } from '../protocol/json.js';

/** What a replay showed. */
export interface ReplayReport {
  readonly matches: boolean;
  /** Calls whose bodies ran again to their end. */
  readonly calls: number;
  /** Where the record ends, for a turn that has not ended. */
  readonly stoppedAt?: string;
  /** What differs, in the words of the kernel or as key and both ends. */
  readonly difference?: string;
}

interface ReplayOptions {
  readonly session: string;
  readonly turn: string;
  readonly loop: Loop<Json, Json>;
  readonly input: Json;
  readonly entries: readonly Entry[];
  readonly clock: Clock;
  readonly ids: Ids;
  readonly context: unknown;
  /** What stood around effects: one that is not settled must meet them again. */
  readonly layers: SessionOptions['layers'];
  readonly maxDepth: number | undefined;
}

const isCallEnd = ({ type }: Entry): boolean => type === 'call.completed' || type === 'call.errored';

export async function replayTurn(parts: ReplayOptions): Promise<ReplayReport> {
  const { session: name, turn, loop, input, entries, clock, ids, context, layers = [], maxDepth } = parts;
  // A cancel stops bodies where they happen to be: what came before it is held against them, what it caused is not.
  const isCancel = ({ type, key }: Entry): boolean => type === 'cancel.requested' && key === turn;
  const cancelled = entries.find(isCancel)?.seq ?? Number.POSITIVE_INFINITY;
  const before = entries.filter((entry) => isCallEnd(entry) && entry.seq < cancelled);
  const recorded = new Map(before.map((entry) => [entry.key, entry]));
  let calls = 0;
  let difference: string | undefined;
  const heard = (entry: Entry): void => {
    const known = recorded.get(entry.key);
    if (!isCallEnd(entry) || known === undefined) return;
    calls += 1;
    if (!haveSameOutcome(entry, known))
      difference ??= `${entry.key} ended with ${describeOutcome(known)}, and now ends with ${describeOutcome(entry)}.`;
  };
  const store = readOnlyStore(entries.filter((entry) => !isCallEnd(entry) && !isCancel(entry)));
  const depth = maxDepth === undefined ? {} : { maxDepth };
  const session = await Session.open(name, {
    store,
    clock,
    ids,
    context,
    layers,
    onEntry: heard,
    replayOnly: true,
    ...depth,
  });
  try {
    const outcome = await session.run(turn, loop, input, { timers: 'pause' });
    const stoppedAt = outcome.status === 'paused' ? outcome.pending[0]?.key : undefined;
    return reportOf(calls, difference, stoppedAt);
  } catch (thrown) {
    if (!(thrown instanceof Fault)) throw thrown;
    if (thrown.code === 'REPLAY_MISMATCH') return reportOf(calls, thrown.message, undefined);
    if (thrown.code !== 'REPLAY_INCOMPLETE') throw thrown;
    return reportOf(calls, difference, String((thrown.data as { readonly key?: string }).key));
  }
}

function reportOf(calls: number, difference: string | undefined, stoppedAt: string | undefined): ReplayReport {
  return {
    matches: difference === undefined,
    calls,
    ...(stoppedAt !== undefined && { stoppedAt }),
    ...(difference !== undefined && { difference }),
  };
}

function haveSameOutcome(a: Entry, b: Entry): boolean {
  return a.type === b.type && jsonEquals(a.value, b.value) && a.error?.code === b.error?.code;
}

function describeOutcome({ error, value }: Entry): string {
  const text = error === undefined ? JSON.stringify(value ?? null) : `${error.code}: ${error.message}`;
  return text.length > 200 ? `${text.slice(0, 200)}…` : text;
}

/** A store that holds these entries and takes nothing. */
function readOnlyStore(entries: readonly Entry[]): Store {
  const next = (entries.at(-1)?.seq ?? -1) + 1;
  return {
    journal: {
      claim: async () => ({ fence: 1, nextSeq: next }),
      append: async (_: Batch) => {},
      read: async function* (_session, from) {
        yield entries.filter(({ seq }) => seq >= from);
      },
      list: async () => [],
      remove: async () => {},
    },
    blobs: { put: async () => {}, get: async () => undefined },
    snapshots: { load: async () => undefined, save: async () => {} },
    leases: singleProcessLeases,
    close: async () => {},
  };
}
