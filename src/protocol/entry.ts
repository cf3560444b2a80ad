/**
 * The entry: the unit of the journal, from which all views are folded. An entry is written once under its key. `seq` is
 * its position in the session and `at` its time in milliseconds since the epoch. A value over the inline size is stored
 * as a blob: `blob` is its digest, and the stored entry has no `value`. `schemaVersion` is the version of the entry's
 * type; absent means 1.
 */
import type { Json } from './json.js';

/**
 * What may happen to an effect whose intent is recorded and whose result is not, after a crash:
 * - `pure`: it changes nothing and may be repeated freely.
 * - `idempotent`: repeating it has the same outcome as performing it once.
 * - `keyed`: the other system deduplicates repetitions by the idempotency key.
 * - `once`: it must not be repeated; it stays in doubt until a person resolves it.
 */
export type Safety = 'pure' | 'idempotent' | 'keyed' | 'once';

/** An error as it is journaled: an outcome without its cause. */
export interface ErrorRecord {
  readonly code: string;
  readonly message: string;
  readonly data?: Json;
  /** The stack of what was thrown, as text that begins with the user's frames; absent for errors of the runtime. */
  readonly stack?: string;
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

/** How many milliseconds the validation of the value took; absent if that was not measured or is zero. */
interface ValidationTime {
  readonly validationMs?: number;
}

/** Of a leaf call, which is its own effect: the intent of the effect, whose input is the value of the entry. */
interface LeafStart {
  readonly kind?: string;
  readonly safety?: Safety;
  /** The name of the effect; absent if it is that of the loop. */
  readonly effectName?: string;
  readonly boundary?: string | undefined;
}

/** Of a leaf call: how the end of the call is also the end of its effect; see `Entry.endsEffect`. */
interface LeafEnd {
  readonly endsEffect?: true | string;
}

/** How an effect in doubt was resolved: performed again, given a result, or failed. */
export type Resolution = 'retry' | 'supply' | 'fail';

/** The fields of each entry type that is reserved for the kernel. */
export interface KernelEntryFields {
  'session.opened': { readonly incarnationId: string };
  'call.started': { readonly name: string; readonly version?: string; readonly definitionDigest?: string } & {
    /** The kind of the loop's body; absent for a tool, for a composite of steps, and in entries of earlier versions. */
    readonly bodyKind?: string;
    readonly isInputInvalid?: true;
  } & LeafStart &
    ValidationTime &
    StoredValue;
  'call.completed': LeafEnd & ValidationTime & StoredValue;
  'call.errored': LeafEnd & { readonly error: ErrorRecord };
  /** A root was stopped from outside of its bodies. It stays open: a later run continues it. The value is a message. */
  'call.stopped': { readonly reason: string } & StoredValue;
  /** A failed root is retried. The value is `{ keys }`: the failed steps, the root first, whose ends no longer apply. */
  'call.reopened': StoredValue;
  'effect.opened': { readonly kind: string; readonly name: string; readonly safety: Safety } & {
    readonly boundary?: string | undefined;
  } & StoredValue;
  'effect.requested': { readonly attemptKey?: string; readonly boundary?: string | undefined } & {
    readonly kind: string;
    readonly name: string;
    readonly safety: Safety;
  } & StoredValue;
  /** An interrupted effect is performed again. There is one for each further start, in addition to `effect.requested`. */
  'effect.repeated': object;
  'effect.returned': StoredValue;
  'effect.failed': { readonly error: ErrorRecord };
  'effect.settled': { readonly attemptKey?: string | undefined; readonly error?: ErrorRecord } & StoredValue;
  'effect.resolved': { readonly resolution: Resolution; readonly by: string; readonly reason?: string } & StoredValue;
  'timer.set': { readonly until: number } & StoredValue;
  'timer.fired': object;
  'wait.opened': { readonly name: string };
  'wait.settled': { readonly signalId: string } & StoredValue;
  'signal.received': { readonly name: string; readonly turnId?: string } & StoredValue;
  'signal.discarded': { readonly waitKey: string; readonly reason: string };
  'group.opened': { readonly name: 'all' | 'race' } & StoredValue;
  'race.won': { readonly winnerIndex: number; readonly error?: ErrorRecord } & StoredValue;
  'step.refused': { readonly name: string; readonly error: ErrorRecord };
  'cancel.requested': { readonly reason: string };
}

/** The entry types that are reserved for the kernel. */
export type KernelEntryType = keyof KernelEntryFields;

/** An entry of a type that is reserved for the kernel, narrowed by `type`. */
export type KernelEntry = {
  [T in KernelEntryType]: EntryBase & { readonly type: T } & KernelEntryFields[T];
}[KernelEntryType];

/** An entry of any type: written by the kernel, or recorded by code above it. */
export interface Entry extends EntryBase, StoredValue {
  readonly type: string;
  readonly name?: string;
  readonly version?: string | undefined;
  readonly kind?: string;
  /** Of a call: the kind of the loop's body. */
  readonly bodyKind?: string;
  /** Of an effect. Of a call: it is a leaf call, and the entry is also the intent of its effect. */
  readonly safety?: Safety;
  /** Of a leaf call: the name of its effect; absent if it is that of the loop. */
  readonly effectName?: string;
  /** Of an effect, and of a leaf call: what runs the effect, and so confines it. */
  readonly boundary?: string | undefined;
  /**
   * Of a leaf call: the entry is also the end of its effect. A text is the member of the effect's result that is the
   * value of this entry; true if the value is the result itself, or if the effect failed.
   */
  readonly endsEffect?: true | string;
  readonly error?: ErrorRecord | undefined;
  /** Of an opened session: distinguishes it from earlier sessions of the same name. */
  readonly incarnationId?: string;
  /** Of a call: the digest of its definition. */
  readonly definitionDigest?: string;
  readonly validationMs?: number;
  /** Of a call: true if its input failed validation. */
  readonly isInputInvalid?: true;
  /** Of a timer: when it fires, in milliseconds since the epoch. */
  readonly until?: number;
  /** Of a settled wait: the delivery id of the signal that it received. */
  readonly signalId?: string;
  /** Of a discarded signal: the key of the wait whose schema refused it. */
  readonly waitKey?: string;
  /** Of a signal: the turn that it is addressed to; absent if any turn of the session may receive it. */
  readonly turnId?: string;
  /** Of a race: the zero-based index of the branch that ended first. */
  readonly winnerIndex?: number;
  /** Of a settled effect: the key of the attempt whose result the layers passed on unchanged. */
  readonly attemptKey?: string | undefined;
  readonly resolution?: Resolution;
  /** Of a resolution: the name of the person who gave it. */
  readonly by?: string;
  readonly reason?: string | undefined;
}

/** An entry before the session assigns its position and time. */
export type EntryDraft = Omit<Entry, 'seq' | 'at'>;
