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

interface Spine {
  readonly seq: number;
  readonly at: number;
  readonly key: string;
  readonly v?: number;
}

interface Valued {
  readonly value?: Json | undefined;
  readonly blob?: string | undefined;
}

/** How many milliseconds the check of the value took; absent when it took none. */
interface Checked {
  readonly took?: number;
}

/** What somebody decided about an effect in doubt. */
export type Decision = 'retry' | 'supply' | 'fail';

/** Entries that the kernel itself writes, by type. */
export interface KernelFacts {
  'session.opened': { readonly born: string };
  'call.started': { readonly name: string; readonly version?: string; readonly digest?: string } & {
    /** What the body of the loop is; absent for a tool, for a composite of steps, and in entries of earlier versions. */
    readonly form?: string;
    readonly refused?: true;
  } & Checked &
    Valued;
  'call.completed': Checked & Valued;
  'call.errored': { readonly error: ErrorRecord };
  'effect.asked': { readonly kind: string; readonly name: string; readonly safety: Safety } & Valued;
  'effect.requested': { readonly from?: string } & {
    readonly kind: string;
    readonly name: string;
    readonly safety: Safety;
  } & Valued;
  'effect.returned': Valued;
  'effect.failed': { readonly error: ErrorRecord };
  'effect.settled': { readonly from?: string | undefined; readonly error?: ErrorRecord } & Valued;
  'effect.decided': { readonly decision: Decision; readonly by: string; readonly reason?: string } & Valued;
  'timer.set': { readonly until: number } & Valued;
  'timer.fired': object;
  'wait.opened': { readonly name: string };
  'wait.settled': { readonly signal: string } & Valued;
  'signal.received': { readonly name: string } & Valued;
  'group.opened': { readonly name: 'all' | 'race' } & Valued;
  'race.won': { readonly winner: number; readonly error?: ErrorRecord } & Valued;
  'step.refused': { readonly name: string; readonly error: ErrorRecord };
  'cancel.requested': { readonly reason: string };
}

export type KernelType = keyof KernelFacts;

/** An entry the kernel wrote, narrowed by `type`. */
export type KernelEntry = { [T in KernelType]: Spine & { readonly type: T } & KernelFacts[T] }[KernelType];

/** An entry of any type: the kernel's own, or one that a ring above recorded. */
export interface Entry extends Spine, Valued {
  readonly type: string;
  readonly name?: string;
  readonly version?: string | undefined;
  readonly kind?: string;
  /** Of a call: what the body of its loop is. */
  readonly form?: string;
  readonly safety?: Safety;
  readonly error?: ErrorRecord | undefined;
  readonly born?: string;
  /** Of the definition that a root was begun with. */
  readonly digest?: string;
  readonly took?: number;
  /** The input of the call did not pass its check. */
  readonly refused?: true;
  readonly until?: number;
  readonly signal?: string;
  readonly winner?: number;
  readonly from?: string | undefined;
  readonly decision?: Decision;
  readonly by?: string;
  readonly reason?: string | undefined;
}

/** An entry before the session gives it its place and time. */
export type Draft = Omit<Entry, 'seq' | 'at'>;
