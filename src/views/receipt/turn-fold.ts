/**
 * The fold of a turn into what its receipts say. It gets the stored entries of the turn, and only those, in order, from
 * the first one. A turn that pauses has several receipts; each covers the entries since the one before, and refers to an
 * entry by its position among them.
 */
import { merkleRoot } from '../../base/merkle.js';
import { ownText } from '../../base/own-property.js';
import type { Mutable } from '../../base/plain-constructor.js';
import { isLeafEntry } from '../../journal/leaf-entries.js';
import type { Entry } from '../../protocol/entry.js';
import type {
  ReceiptApproval,
  ReceiptEffect,
  ReceiptJournal,
  ReceiptLoop,
  ReceiptPredicate,
} from '../../protocol/receipt.js';
import {
  APPROVAL_SIGNAL_PREFIX,
  cancelReasonOf,
  isKeyOfTurn,
  recordedStopOf,
  stopReasonOf,
  stopTextOf,
  TURN_GRANTED,
  TURN_OPENED,
  TURN_REFUSED,
} from '../turns.js';
import { commitmentOf, commitmentSalt } from './commitment.js';
import { leafHashes } from './leaf-hashes.js';
import { signableText } from './signable-text.js';
import { type GrantedBy, type TurnEffect, TurnEffects } from './turn-effects.js';

const MAX_REASON_CHARS = 4096;
/** The facts about a turn that its receipts cover. */
const TURN_FACTS: ReadonlySet<string> = new Set([TURN_OPENED, TURN_GRANTED, TURN_REFUSED]);

/** True for the type of a fact about a turn that its receipts cover. */
export function isTurnFact(type: string): boolean {
  return TURN_FACTS.has(type);
}

/**
 * True for the entries that the receipts of a turn cover: its own, the one that opens it, the signals that are addressed
 * to it, and the answers to its approvals.
 */
export function isEntryOfTurn({ key, type, name = '', turnId: addressee }: Entry, turnId: string): boolean {
  if (type === 'signal.received') return addressee === turnId || isAnswerFor(name, turnId);
  return key.startsWith('#') ? key === `#${turnId}` && isTurnFact(type) : isKeyOfTurn(key, turnId);
}

/** True for the name of a signal that answers an approval of the turn. The id of an approval begins with its turn. */
function isAnswerFor(name: string, turnId: string): boolean {
  return (
    name.startsWith(APPROVAL_SIGNAL_PREFIX) &&
    name.slice(APPROVAL_SIGNAL_PREFIX.length, name.lastIndexOf(':')) === turnId
  );
}

/** How the part of a turn that a receipt covers ended. */
export type TurnOutcome = Pick<ReceiptPredicate, 'state' | 'final' | 'reason' | 'code'>;

/** What a receipt says about the part of a turn that it covers. */
export type TurnPart = TurnOutcome &
  Pick<ReceiptPredicate, 'reopened' | 'loop' | 'principal' | 'approvals' | 'effects' | 'journal'>;

/** Options of a fold. */
export interface TurnFoldOptions {
  /** Names who gave a standing grant that approved a call. @default no name is given */
  readonly grantedBy?: GrantedBy | undefined;
}

/** Folds the entries of one turn. */
export class TurnFold {
  private readonly turnId: string;
  private readonly effects: TurnEffects;
  private started: Entry | undefined;
  private ended: Entry | undefined;
  private principal: string | undefined;
  /** The entry that stopped the turn, or that records its refusal, if it is the last of the turn. */
  private stopped: Entry | undefined;
  private refused: Entry | undefined;
  private isReopened = false;
  /** The entries since the last receipt, and the leaf of each by its sequence number. */
  private part: Entry[] = [];
  private firstSeq = 0;

  constructor(turnId: string, { grantedBy = () => undefined }: TurnFoldOptions = {}) {
    this.turnId = turnId;
    this.effects = new TurnEffects(grantedBy);
  }

  /** Applies the next entry of the turn. */
  apply(entry: Entry): void {
    if (this.part.length === 0) this.firstSeq = entry.seq;
    this.part.push(entry);
    if (entry.type === 'signal.received') return;
    // The parts of an entry of a leaf call, without creating them: they are most of the entries of a turn.
    if (isLeafEntry(entry)) this.effects.applyLeaf(entry);
    const { key, type } = entry;
    this.stopped = type === 'call.stopped' ? entry : undefined;
    if (key === this.turnId) {
      this.isReopened ||= type === 'call.reopened';
      if (type === 'call.started') this.started = entry;
      else if (type === 'call.completed' || type === 'call.errored') this.ended = entry;
      else if (type === 'call.reopened') this.ended = undefined;
    } else if (type === TURN_OPENED && key === `#${this.turnId}`) {
      this.principal = ownText(entry.value, 'principal') || undefined;
    } else if (type === TURN_REFUSED && key === `#${this.turnId}`) this.refused = entry;
    else this.effects.apply(entry);
  }

  /** True if nothing was applied since the last receipt. */
  get isEmpty(): boolean {
    return this.part.length === 0;
  }

  /** Starts the next part: what is applied from now on belongs to the next receipt. */
  beginPart(): void {
    this.isReopened = false;
    this.part = [];
  }

  /** Returns what the receipt of the current part says. `salt` is the secret salt of the receipt. */
  summarize(salt: Uint8Array): TurnPart {
    const leafOf = leafFinder(this.part);
    const inPart = (seq: number | undefined): boolean =>
      seq !== undefined && this.part.length > 0 && seq >= this.firstSeq;
    const approvals: ReceiptApproval[] = [];
    const effects: ReceiptEffect[] = [];
    for (const effect of this.effects.all()) {
      const isApprovalListed = inPart(effect.answeredSeq) || inPart(effect.intentSeq);
      const commit = isApprovalListed && effect.approval !== undefined ? commitmentSalt(salt, effect.key) : undefined;
      if (commit !== undefined) approvals.push(approvalOf(effect, commit));
      if (effect.state !== undefined && inPart(effect.changedSeq)) effects.push(effectOf(effect, leafOf, commit));
    }
    const journal = journalOf(this.part, leafHashes(this.part, salt));
    const outcome = this.refused === undefined ? outcomeOf(this.ended, this.stopped) : refusalOf(this.refused);
    const part: Mutable<TurnPart> = Object.assign(outcome, { approvals, effects, journal, loop: loopOf(this.started) });
    if (this.isReopened) part.reopened = true;
    if (this.principal !== undefined) part.principal = signableText(this.principal);
    return part;
  }
}

/** Folds the entries of a turn, of which those from `fromSeq` on belong to the receipt. */
export function foldTurn(
  turnId: string,
  entries: Iterable<Entry>,
  fromSeq: number,
  salt: Uint8Array,
  options?: TurnFoldOptions,
): TurnPart {
  const fold = new TurnFold(turnId, options);
  let isBegun = false;
  for (const entry of entries) {
    if (!isBegun && entry.seq >= fromSeq) fold.beginPart();
    isBegun ||= entry.seq >= fromSeq;
    fold.apply(entry);
  }
  return fold.summarize(salt);
}

/** Returns a function that finds the leaf of an entry by its sequence number; undefined if it is not in the part. */
function leafFinder(part: readonly Entry[]): (seq: number | undefined) => number | undefined {
  const [first] = part;
  const last = part.at(-1);
  if (first === undefined || last === undefined) return () => undefined;
  if (last.seq - first.seq === part.length - 1)
    return (seq = -1) => (seq < first.seq || seq > last.seq ? undefined : seq - first.seq);
  const leaves = new Map(part.map(({ seq }, leaf) => [seq, leaf]));
  return (seq = -1) => leaves.get(seq);
}

function journalOf(part: readonly Entry[], leaves: readonly string[]): ReceiptJournal {
  const from = part[0]?.seq ?? 0;
  return { count: part.length, from, root: merkleRoot(leaves), to: part.at(-1)?.seq ?? from };
}

function loopOf(started: Entry | undefined): ReceiptLoop {
  const { name = '', version = '', definitionDigest = '' } = started ?? {};
  return { definition: signableText(definitionDigest), id: signableText(name), version: signableText(version) };
}

/** Returns the outcome of a turn that was refused. */
function refusalOf({ value }: Entry): TurnOutcome {
  const [code, reason] = [ownText(value, 'code'), ownText(value, 'reason')];
  return {
    state: 'refused',
    final: true,
    reason: signableText(reason, MAX_REASON_CHARS),
    ...(code !== '' && { code: signableText(code) }),
  };
}

/** Returns the outcome of a turn that ended with this entry; that of an open turn without it. */
function outcomeOf(ended: Entry | undefined, stopped: Entry | undefined): TurnOutcome {
  if (ended === undefined && stopped !== undefined)
    return {
      state: 'stopped',
      final: false,
      reason: signableText(stopTextOf(recordedStopOf(stopped)), MAX_REASON_CHARS),
    };
  if (ended === undefined) return { state: 'paused', final: false };
  const { error, type } = ended;
  if (type === 'call.completed') return { state: 'ok', final: true };
  if (error === undefined) return { state: 'error', final: true };
  const [stop, cancel] = [stopReasonOf(error), cancelReasonOf(error)];
  const reason = stop ?? cancel;
  return {
    state: stop !== undefined ? 'stopped' : cancel !== undefined ? 'cancelled' : 'error',
    final: true,
    ...(reason !== undefined && { reason: signableText(reason, MAX_REASON_CHARS) }),
    code: signableText(error.code),
  };
}

function approvalOf({ key, approval, shown, intent, isFallback }: TurnEffect, salt: Uint8Array): ReceiptApproval {
  const { id = '', tool = '', by = '', approved = false } = approval ?? {};
  return {
    approved,
    arguments: commitmentOf(salt, (isFallback ? intent : shown) ?? {}),
    by: signableText(by),
    effect: signableText(key),
    id: signableText(id),
    tool: signableText(tool),
  };
}

function effectOf(
  effect: TurnEffect,
  leafOf: (seq: number | undefined) => number | undefined,
  salt: Uint8Array | undefined,
): ReceiptEffect {
  const intent = leafOf(effect.intentSeq) ?? leafOf(effect.repeatedSeq);
  const end = leafOf(effect.endSeq);
  const listed: Partial<Mutable<ReceiptEffect>> = {};
  // In canonical order, so that the statement has not to be sorted.
  if (salt !== undefined && effect.intent !== undefined) listed.arguments = commitmentOf(salt, effect.intent);
  if (effect.attempts > 1) listed.attempts = effect.attempts;
  if (effect.boundary !== undefined) listed.boundary = signableText(effect.boundary);
  if (end !== undefined) listed.end = end;
  if (intent !== undefined) listed.intent = intent;
  listed.key = signableText(effect.key);
  listed.kind = signableText(effect.kind);
  listed.name = signableText(effect.name);
  if (effect.resolutions !== undefined) listed.resolutions = [...effect.resolutions];
  listed.safety = effect.safety;
  listed.state = effect.state ?? 'unknown';
  return listed as ReceiptEffect;
}
