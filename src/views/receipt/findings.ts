/** The findings of a verification: what is wrong, by check, in the order in which it was found. */
import type { VerdictCheck } from '../../protocol/receipt.js';
import type { ReceiptReason } from './reasons.js';

/** The checks of a bundle, in their order. */
export const CHECKS = [
  'form',
  'checkpoint',
  'signatures',
  'log',
  'chain',
  'effects',
  'entries',
  'journal',
  'store',
  'completeness',
] as const;

/** The name of a check. */
export type CheckName = (typeof CHECKS)[number];

/** The checks that need the store of the receipts. */
const STORE_CHECKS: readonly CheckName[] = ['journal', 'store'];

/** Collects findings. */
export class Findings {
  /** True if a checkpoint is there, so that its check says something. */
  hasCheckpoint = false;
  /** How often something was found. */
  count = 0;
  private readonly found = new Map<CheckName, string[]>();
  private readonly doubts: { readonly reason: ReceiptReason; readonly note: string }[] = [];
  private readonly codes = new Set<ReceiptReason>();
  private readonly hasStore: boolean;

  /** `hasStore` is true if the receipts are compared with the journal of their store. */
  constructor(hasStore = false) {
    this.hasStore = hasStore;
  }

  /** Adds a finding. `note` says where it is. */
  add(check: CheckName, reason: ReceiptReason, note: string): void {
    this.codes.add(reason);
    this.count += 1;
    const notes = this.found.get(check);
    if (notes === undefined) this.found.set(check, [note]);
    else notes.push(note);
  }

  /** Adds a reason why it is unknown whether something is missing. It says nothing if something is known to be. */
  doubt(reason: ReceiptReason, note: string): void {
    this.doubts.push({ reason, note });
  }

  /** True if this reason for doubt was added. */
  hasDoubt(reason: ReceiptReason): boolean {
    return this.doubts.some((doubt) => doubt.reason === reason);
  }

  /** True if nothing was found, except that receipts are or may be missing. */
  get isValid(): boolean {
    return [...this.found.keys()].every((check) => check === 'completeness');
  }

  /** Whether everything is there: false if receipts are missing, and unknown if they may be, or if anything is wrong. */
  get completeness(): boolean | 'unknown' {
    if (this.found.has('completeness')) return false;
    // guard: doubt-is-not-completeness
    return this.isValid && this.doubts.length === 0 ? true : 'unknown';
  }

  /** The codes of all findings, each once; without findings, those of the doubts. */
  get reasons(): readonly ReceiptReason[] {
    return [...this.codes, ...new Set(this.openDoubts.map(({ reason }) => reason))];
  }

  /** Returns all checks with their results. The note of a failed check is that of its first finding. */
  checks(): readonly VerdictCheck[] {
    return CHECKS.filter((name) => this.isMade(name)).map((name) => {
      const notes = this.found.get(name);
      if (notes !== undefined) return { name, ok: false, note: summaryOf(notes) };
      if (name !== 'completeness' || this.openDoubts.length === 0) return { name, ok: true };
      return { name, ok: true, note: `unknown: ${summaryOf(this.openDoubts.map(({ note }) => note))}` };
    });
  }

  /** The doubts, if nothing worse was found. */
  private get openDoubts(): readonly { readonly reason: ReceiptReason; readonly note: string }[] {
    return this.found.size === 0 ? this.doubts : [];
  }

  private isMade(name: CheckName): boolean {
    if (this.found.has(name)) return true;
    return name === 'checkpoint' ? this.hasCheckpoint : this.hasStore || !STORE_CHECKS.includes(name);
  }
}

function summaryOf(notes: readonly string[]): string {
  return `${notes[0]}${notes.length > 1 ? ` (${notes.length - 1} more)` : ''}`;
}
