/**
 * The entry: the one unit of the journal, and the spine of every view.
 * An entry is written once under its key; `seq` is its place in the session, `at` the clock's milliseconds.
 * A value over the inline size is stored by digest: `blob` names it and the store keeps the entry without `value`.
 * `v` is the version of this entry's own type; absent means 1.
 */
import type { Json } from './json.js';

/** How an effect may be treated when a crash leaves its intent without a result. */
export type Safety = 'pure' | 'idempotent' | 'keyed' | 'once';

/** An error as it is journaled: an outcome, not a stack. */
export interface ErrorRecord {
  readonly code: string;
  readonly message: string;
  readonly data?: Json;
}

interface EntryBase {
  readonly seq: number;
  readonly at: number;
  readonly key: string;
  readonly schemaVersion?: number;
}

interface StoredValue {
  readonly value?: Json | undefined;
  readonly blob?: string | undefined;
}

/** How many milliseconds the check of the value took; absent when it took none. */
interface ValidationTime {
  readonly validationMs?: number;
}

/** What somebody decided about an effect in doubt. */
export type Resolution = 'retry' | 'supply' | 'fail';

/** Entries that the kernel itself writes, by type. */
export interface KernelEntryFields {
  'session.opened': { readonly incarnationId: string };
  'call.started': { readonly name: string; readonly version?: string; readonly definitionDigest?: string } & {
    /** What the body of the loop is; absent for a tool, for a composite of steps, and in entries of earlier versions. */
    readonly bodyKind?: string;
    readonly isInputInvalid?: true;
  } & ValidationTime &
    StoredValue;
  'call.completed': ValidationTime & StoredValue;
  'call.errored': { readonly error: ErrorRecord };
  'effect.opened': { readonly kind: string; readonly name: string; readonly safety: Safety } & StoredValue;
  'effect.requested': { readonly attemptKey?: string } & {
    readonly kind: string;
    readonly name: string;
    readonly safety: Safety;
  } & StoredValue;
  'effect.returned': StoredValue;
  'effect.failed': { readonly error: ErrorRecord };
  'effect.settled': { readonly attemptKey?: string | undefined; readonly error?: ErrorRecord } & StoredValue;
  'effect.resolved': { readonly resolution: Resolution; readonly by: string; readonly reason?: string } & StoredValue;
  'timer.set': { readonly until: number } & StoredValue;
  'timer.fired': object;
  'wait.opened': { readonly name: string };
  'wait.settled': { readonly signalId: string } & StoredValue;
  'signal.received': { readonly name: string } & StoredValue;
  'group.opened': { readonly name: 'all' | 'race' } & StoredValue;
  'race.won': { readonly winnerIndex: number; readonly error?: ErrorRecord } & StoredValue;
  'step.refused': { readonly name: string; readonly error: ErrorRecord };
  'cancel.requested': { readonly reason: string };
}

export type KernelEntryType = keyof KernelEntryFields;

/** An entry the kernel wrote, narrowed by `type`. */
export type KernelEntry = {
  [T in KernelEntryType]: EntryBase & { readonly type: T } & KernelEntryFields[T];
}[KernelEntryType];

/** An entry of any type: the kernel's own, or one that a ring above recorded. */
export interface Entry extends EntryBase, StoredValue {
  readonly type: string;
  readonly name?: string;
  readonly version?: string | undefined;
  readonly kind?: string;
  /** Of a call: what the body of its loop is. */
  readonly bodyKind?: string;
  readonly safety?: Safety;
  readonly error?: ErrorRecord | undefined;
  readonly incarnationId?: string;
  /** Of the definition that a root was begun with. */
  readonly definitionDigest?: string;
  readonly validationMs?: number;
  /** The input of the call did not pass its check. */
  readonly isInputInvalid?: true;
  readonly until?: number;
  readonly signalId?: string;
  readonly winnerIndex?: number;
  readonly attemptKey?: string | undefined;
  readonly resolution?: Resolution;
  readonly by?: string;
  readonly reason?: string | undefined;
}

/** An entry before the session gives it its place and time. */
export type EntryDraft = Omit<Entry, 'seq' | 'at'>;
