/**
 * The view of a session's approvals: pending, answered and abandoned. Approvals of open turns are held in full. For
 * turns that have ended only the final state is held, and only for a bounded number of approvals.
 */

import { parseTarget } from '../base/approval-target.js';
import { ownProperty, ownText } from '../base/own-property.js';
import type { Approval, ApprovalState, StandingGrant } from '../protocol/approval.js';
import type { Entry } from '../protocol/entry.js';
import { ApprovalTracker } from './conversation/approval-tracker.js';
import { type OpenCall, OpenCalls } from './conversation/open-calls.js';

/** The maximum number of approvals of ended turns that are remembered. */
const MAX_ENDED_APPROVALS = 10_000;

/** Folds the entries of a session into its approvals. */
export class Approvals {
  private readonly calls = new OpenCalls<OpenCall>();
  private readonly tracker: ApprovalTracker;
  /** The approvals of turns that have not ended, by id. */
  private readonly openStates = new Map<string, ApprovalState & { readonly approval: Approval }>();
  /** The final states of approvals of ended turns, by id. */
  private readonly endedStates = new Map<string, ApprovalState>();
  private readonly givenGrants: StandingGrant[] = [];

  constructor(sessionId: string) {
    this.tracker = new ApprovalTracker(sessionId, this.calls, {
      onRequested: (approval) => void this.openStates.set(approval.id, { approval, isAbandoned: false }),
      onAnswered: (approval, answer) => void this.openStates.set(approval.id, { approval, answer, isAbandoned: false }),
      onAbandoned: (approval) => void this.openStates.set(approval.id, { approval, isAbandoned: true }),
    });
  }

  /** Applies the next entry of the session. */
  apply(entry: Entry): void {
    this.tracker.apply(entry);
    const { type } = entry;
    if (type === 'call.started') this.startCall(entry);
    else if (type === 'call.completed' || type === 'call.errored') this.endCall(entry.key);
    else if (type === 'race.won') this.endCallsBelow(entry.key, `${entry.key}/${entry.winnerIndex}`);
    else if (type === 'rondo.grant.given') this.addGrant(entry);
  }

  /** Returns the pending approvals turn by turn, in the order of their calls. */
  pending(): readonly Approval[] {
    return this.tracker.pending();
  }

  /** Returns the state of an approval; undefined if the id is unknown or no longer remembered. */
  get(id: string): ApprovalState | undefined {
    return this.openStates.get(id) ?? this.endedStates.get(id);
  }

  /** Returns the standing grants of the session, oldest first. */
  standingGrants(): readonly StandingGrant[] {
    return this.givenGrants;
  }

  private startCall({ key, name = '' }: Entry): void {
    const parent = this.calls.enclosing(key);
    if (parent !== undefined || !key.includes('/'))
      this.calls.add({ key, name, parent, openChildren: 0, openEffects: 0 });
  }

  private endCall(key: string): void {
    const call = this.calls.get(key);
    if (call === undefined) return;
    if (call.openChildren > 0) this.endCallsBelow(key);
    this.calls.remove(call);
    if (call.parent === undefined && this.openStates.size > 0) this.forgetTurn(key);
  }

  /** Ends the calls below a key, except those below `exceptKey`. */
  private endCallsBelow(key: string, exceptKey?: string): void {
    if (exceptKey !== undefined && (this.calls.enclosing(key)?.openChildren ?? 0) === 0) return;
    for (const call of this.calls.descendantsOf(key, exceptKey)) this.calls.remove(call);
  }

  /** Reduces the approvals of an ended turn to their final state. */
  private forgetTurn(turnId: string): void {
    for (const [id, { approval, ...finalState }] of this.openStates) {
      if (approval.turnId !== turnId) continue;
      this.openStates.delete(id);
      this.endedStates.set(id, finalState);
    }
    for (const id of this.endedStates.keys()) {
      if (this.endedStates.size <= MAX_ENDED_APPROVALS) break;
      this.endedStates.delete(id);
    }
  }

  /**
   * Adds a grant that was recorded from outside a turn. Entries that a body records have keys below that of its call
   * and are ignored.
   */
  private addGrant({ key, value, at }: Entry): void {
    // guard: grant-only-from-outside
    if (!key.startsWith('#')) return;
    const schema = ownProperty(value, 'schema');
    const givenAt = ownProperty(value, 'at');
    const tool = ownText(value, 'tool');
    const limitedPaths = ownProperty(value, 'limitedPaths');
    if (tool === '' || schema === undefined) return;
    this.givenGrants.push({
      tool,
      definitionDigest: ownText(value, 'definition'),
      build: ownText(value, 'build') || undefined,
      schema,
      limitedPaths: Array.isArray(limitedPaths) ? limitedPaths.map(String) : undefined,
      target: parseTarget(ownProperty(value, 'target')),
      by: ownText(value, 'by'),
      principal: ownText(value, 'principal') || undefined,
      grant: ownText(value, 'grant') || undefined,
      approvalId: ownText(value, 'approval'),
      givenAt: typeof givenAt === 'number' ? givenAt : at,
    });
  }
}
