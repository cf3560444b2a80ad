/**
 * The approvals of a session: what waits for an answer, what was answered, and what is over without one. While a turn
 * goes on everything is known of its approvals; of those of turns that ended, only how they ended, and not for ever.
 */
import { ownProperty, ownText } from '../base/own-property.js';
import { targetIn } from '../base/target.js';
import type { Approval, ApprovalTarget } from '../protocol/approval.js';
import type { Entry } from '../protocol/entry.js';
import type { Json } from '../protocol/json.js';
import { Calls, type OpenCall } from './conversation/calls.js';
import { type Answered, Gate } from './conversation/gate.js';

export type { Answered } from './conversation/gate.js';

/** What is known of an approval: it waits unless it was answered or is over. */
export interface KnownApproval {
  /** Absent once its turn has ended. */
  readonly approval?: Approval;
  readonly answered?: Answered;
  /** Nobody waits for an answer any more, and none was given. */
  readonly over: boolean;
}

/** A person's word that calls of one tool need no further answer, where their arguments fit a schema. */
export interface StandingGrant {
  readonly tool: string;
  /** The digest of the definition that it holds for. */
  readonly definition: string;
  /** A JSON Schema document for the arguments. */
  readonly schema: Json;
  /** The arguments that the schema limits, as JSON arrays of member names; absent in grants of earlier versions. */
  readonly limits?: readonly string[] | undefined;
  /** What the call acted on that it was given with. */
  readonly target?: ApprovalTarget | undefined;
  readonly by: string;
  /** On whose behalf the turn ran that it was given in. */
  readonly principal?: string | undefined;
  /** The approval that it was given with. */
  readonly approval: string;
  readonly at: number;
}

/** How many approvals of ended turns are remembered. */
const REMEMBERED = 10_000;

/** Folds the entries of a session into its approvals. */
export class Approvals {
  private readonly calls = new Calls<OpenCall>();
  private readonly gate: Gate;
  /** Of turns that have not ended. */
  private readonly known = new Map<string, KnownApproval & { readonly approval: Approval }>();
  private readonly ended = new Map<string, KnownApproval>();
  private readonly given: StandingGrant[] = [];

  constructor(sessionId: string) {
    this.gate = new Gate(sessionId, this.calls, {
      asked: (approval) => void this.known.set(approval.id, { approval, over: false }),
      answered: (approval, answered) => void this.known.set(approval.id, { approval, answered, over: false }),
      over: (approval) => void this.known.set(approval.id, { approval, over: true }),
    });
  }

  apply(entry: Entry): void {
    this.gate.apply(entry);
    const { type } = entry;
    if (type === 'call.started') this.begin(entry);
    else if (type === 'call.completed' || type === 'call.errored') this.end(entry.key);
    else if (type === 'race.won') this.leave(entry.key, `${entry.key}/${entry.winner}`);
    else if (type === 'rondo.grant.given') this.grant(entry);
  }

  /** What waits for an answer, in the order of the calls that it is for. */
  pending(): readonly Approval[] {
    return this.gate.pending();
  }

  get(id: string): KnownApproval | undefined {
    return this.known.get(id) ?? this.ended.get(id);
  }

  grants(): readonly StandingGrant[] {
    return this.given;
  }

  private begin({ key, name = '' }: Entry): void {
    const parent = this.calls.around(key);
    if (parent !== undefined || !key.includes('/')) this.calls.begin({ key, name, parent, open: 0, asked: 0 });
  }

  private end(key: string): void {
    const call = this.calls.get(key);
    if (call === undefined) return;
    if (call.open > 0) this.leave(key);
    this.calls.end(call);
    if (call.parent === undefined && this.known.size > 0) this.forget(key);
  }

  private leave(key: string, but?: string): void {
    if (but !== undefined && (this.calls.around(key)?.open ?? 0) === 0) return;
    for (const call of this.calls.below(key, but)) this.calls.end(call);
  }

  /** A turn has ended: how its approvals ended is enough from now on. */
  private forget(turnId: string): void {
    for (const [id, { approval, ...end }] of this.known) {
      if (approval.turnId !== turnId) continue;
      this.known.delete(id);
      this.ended.set(id, end);
    }
    for (const id of this.ended.keys()) {
      if (this.ended.size <= REMEMBERED) break;
      this.ended.delete(id);
    }
  }

  /** Only a note from outside counts: what a body records lies under its call, and nobody grants anything to himself. */
  private grant({ key, value, at }: Entry): void {
    // guard: grant-only-from-outside
    if (!key.startsWith('#')) return;
    const schema = ownProperty(value, 'schema');
    const given = ownProperty(value, 'at');
    const tool = ownText(value, 'tool');
    const limits = ownProperty(value, 'limits');
    if (tool === '' || schema === undefined) return;
    this.given.push({
      tool,
      definition: ownText(value, 'definition'),
      schema,
      limits: Array.isArray(limits) ? limits.map(String) : undefined,
      target: targetIn(ownProperty(value, 'target')),
      by: ownText(value, 'by'),
      principal: ownText(value, 'principal') || undefined,
      approval: ownText(value, 'approval'),
      at: typeof given === 'number' ? given : at,
    });
  }
}
