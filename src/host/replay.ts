/**
 * Replays a turn to verify its code: all bodies run again over the recorded entries; no effect is performed and no
 * entry is written. The recorded ends of calls are hidden from the kernel, so that every body runs, and compared with
 * the new ends.
 */

import { Fault } from '../base/errors.js';
import type { Clock, Ids } from '../journal/clock.js';
import { noDueTurns } from '../journal/due-turns.js';
import { expandLeaves } from '../journal/leaf-entries.js';
import { singleProcessLeases } from '../journal/leases.js';
import type { SessionOptions } from '../journal/session-options.js';
import type { Batch, Store } from '../journal/store.js';
import { jsonEquals } from '../json/value.js';
import { Session } from '../kernel/session.js';
import type { Loop } from '../protocol/body.js';
import type { Entry } from '../protocol/entry.js';
import type { Json } from '../protocol/json.js';

/** The result of a replay. */
export interface ReplayReport {
  /** True if the bodies took the recorded steps and ended with the recorded results. */
  readonly matches: boolean;
  /** The number of recorded calls whose bodies ran to their end again. */
  readonly calls: number;
  /** The key of the step at which the recorded entries end; absent if the turn ended again or a mismatch was found. */
  readonly stoppedAt?: string;
  /** The message of the replay mismatch, or else the first call that ended differently, with both ends. */
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
  /** The layers of the turn: an effect that is not settled passes them again. */
  readonly layers: SessionOptions['layers'];
  readonly maxDepth: number | undefined;
}

const isCallEnd = ({ type }: Entry): boolean => type === 'call.completed' || type === 'call.errored';

/** Replays a turn. Throws any error other than a mismatch and the end of the recorded entries. */
export async function replayTurn(options: ReplayOptions): Promise<ReplayReport> {
  const { session: name, turn, loop, input, entries, clock, ids, context, layers = [], maxDepth } = options;
  // Where a cancel stops a body depends on timing, so only ends before the cancel are compared.
  const isCancel = ({ type, key }: Entry): boolean => type === 'cancel.requested' && key === turn;
  const cancelSeq = entries.find(isCancel)?.seq ?? Number.POSITIVE_INFINITY;
  const recordedEnds = new Map(
    entries.filter((entry) => isCallEnd(entry) && entry.seq < cancelSeq).map((entry) => [entry.key, entry]),
  );
  let calls = 0;
  let difference: string | undefined;
  const compareEnd = (entry: Entry): void => {
    const recorded = recordedEnds.get(entry.key);
    if (!isCallEnd(entry) || recorded === undefined) return;
    calls += 1;
    if (haveSameOutcome(entry, recorded)) return;
    const [before, now] = [describeOutcome(recorded), describeOutcome(entry)];
    difference ??= `${entry.key} ended with ${before}, and now ends with ${now}.`;
  };
  const store = readOnlyStore(expandLeaves(entries).filter((entry) => !isCallEnd(entry) && !isCancel(entry)));
  const depth = maxDepth === undefined ? {} : { maxDepth };
  const session = await Session.open(name, {
    store,
    clock,
    ids,
    context,
    layers,
    onEntry: compareEnd,
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

/** True if two ends of a call have the same type, value and error code. Error messages may differ. */
function haveSameOutcome(a: Entry, b: Entry): boolean {
  return a.type === b.type && jsonEquals(a.value, b.value) && a.error?.code === b.error?.code;
}

function describeOutcome({ error, value }: Entry): string {
  const text = error === undefined ? JSON.stringify(value ?? null) : `${error.code}: ${error.message}`;
  return text.length > 200 ? `${text.slice(0, 200)}…` : text;
}

/** Returns a store that holds these entries and ignores writes. */
function readOnlyStore(entries: readonly Entry[]): Store {
  const nextSeq = (entries.at(-1)?.seq ?? -1) + 1;
  return {
    journal: {
      claim: async () => ({ fence: 1, nextSeq }),
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
    dueTurns: noDueTurns,
    close: async () => {},
  };
}
