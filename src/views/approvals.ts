/**
 * The approvals of a session: what waits for an answer, what was answered, and what is over without one. While a turn
 * goes on everything is known of its approvals; of those of turns that ended, only how they ended, and not for ever.
 */

import { parseTarget } from '../base/approval-target.js';
import { ownProperty, ownText } from '../base/own-property.js';
import type { Approval, ApprovalState, StandingGrant } from '../protocol/approval.js';
import type { Entry } from '../protocol/entry.js';
import { ApprovalTracker } from './conversation/approval-tracker.js';
import { type OpenCall, OpenCalls } from './conversation/open-calls.js';

/** How many approvals of ended turns are remembered. */
const MAX_ENDED_APPROVALS = 10_000;

/** Folds the entries of a session into its approvals. */
export class Approvals {
  private readonly calls = new OpenCalls<OpenCall>();
  private readonly tracker: ApprovalTracker;
  /** Of turns that have not ended. */
  private readonly openStates = new Map<string, ApprovalState & { readonly approval: Approval }>();
  private readonly endedStates = new Map<string, ApprovalState>();
  private readonly givenGrants: StandingGrant[] = [];

  constructor(sessionId: string) {
    this.tracker = new ApprovalTracker(sessionId, this.calls, {
      onRequested: (approval) => void this.openStates.set(approval.id, { approval, isAbandoned: false }),
      onAnswered: (approval, answered) =>
        void this.openStates.set(approval.id, { approval, answer: answered, isAbandoned: false }),
      onAbandoned: (approval) => void this.openStates.set(approval.id, { approval, isAbandoned: true }),
    });
  }

  apply(entry: Entry): void {
    this.tracker.apply(entry);
    const { type } = entry;
    if (type === 'call.started') this.startCall(entry);
    else if (type === 'call.completed' || type === 'call.errored') this.endCall(entry.key);
    else if (type === 'race.won') this.endCallsBelow(entry.key, `${entry.key}/${entry.winnerIndex}`);
    else if (type === 'rondo.grant.given') this.addGrant(entry);
  }

  /** What waits for an answer, in the order of the calls that it is for. */
  pending(): readonly Approval[] {
    return this.tracker.pending();
  }

  get(id: string): ApprovalState | undefined {
    return this.openStates.get(id) ?? this.endedStates.get(id);
  }

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

  private endCallsBelow(key: string, but?: string): void {
    if (but !== undefined && (this.calls.enclosing(key)?.openChildren ?? 0) === 0) return;
    for (const call of this.calls.descendantsOf(key, but)) this.calls.remove(call);
  }

  /** A turn has ended: how its approvals ended is enough from now on. */
  private forgetTurn(turnId: string): void {
    for (const [id, { approval, ...end }] of this.openStates) {
      if (approval.turnId !== turnId) continue;
      this.openStates.delete(id);
      this.endedStates.set(id, end);
    }
    for (const id of this.endedStates.keys()) {
      if (this.endedStates.size <= MAX_ENDED_APPROVALS) break;
      this.endedStates.delete(id);
    }
  }

  /** Only a note from outside counts: what a body records lies under its call, and nobody grants anything to himself. */
  private addGrant({ key, value, at }: Entry): void {
    // guard: grant-only-from-outside
    if (!key.startsWith('#')) return;
    const schema = ownProperty(value, 'schema');
    const given = ownProperty(value, 'at');
    const tool = ownText(value, 'tool');
    const limits = ownProperty(value, 'limits');
    if (tool === '' || schema === undefined) return;
    this.givenGrants.push({
      tool,
      definitionDigest: ownText(value, 'definition'),
      schema,
      limits: Array.isArray(limits) ? limits.map(String) : undefined,
      target: parseTarget(ownProperty(value, 'target')),
      by: ownText(value, 'by'),
      principal: ownText(value, 'principal') || undefined,
      approvalId: ownText(value, 'approval'),
      givenAt: typeof given === 'number' ? given : at,
    });
  }
}
