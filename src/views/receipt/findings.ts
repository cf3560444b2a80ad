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
  'completeness',
] as const;

/** The name of a check. */
export type CheckName = (typeof CHECKS)[number];

/** The check that needs the journal of the store. */
const STORE_CHECK: CheckName = 'journal';

/** Collects findings. */
export class Findings {
  private readonly found = new Map<CheckName, string[]>();
  private readonly codes = new Set<ReceiptReason>();
  private readonly hasStore: boolean;

  /** `hasStore` is true if the receipts are compared with the journal of their store. */
  constructor(hasStore = false) {
    this.hasStore = hasStore;
  }

  /** Adds a finding. `note` says where it is. */
  add(check: CheckName, reason: ReceiptReason, note: string): void {
    this.codes.add(reason);
    const notes = this.found.get(check);
    if (notes === undefined) this.found.set(check, [note]);
    else notes.push(note);
  }

  /** True if nothing was found, except that receipts are or may be missing. */
  get isValid(): boolean {
    return [...this.found.keys()].every((check) => check === 'completeness');
  }

  /** True if receipts are missing. */
  get hasMissing(): boolean {
    return this.found.has('completeness');
  }

  /** The codes of all findings, each once. */
  get reasons(): readonly ReceiptReason[] {
    return [...this.codes];
  }

  /** Returns all checks with their results. The note of a failed check is that of its first finding. */
  checks(): readonly VerdictCheck[] {
    return CHECKS.filter((name) => this.hasStore || name !== STORE_CHECK).map((name) => {
      const notes = this.found.get(name);
      if (notes === undefined) return { name, ok: true };
      const more = notes.length > 1 ? ` (${notes.length - 1} more)` : '';
      return { name, ok: false, note: `${notes[0]}${more}` };
    });
  }
}
