/**
 * What is done to a turn from outside while it runs, waits or is interrupted: cancel it, answer an approval, send it a message,
 * decide on an effect in doubt. If the turn runs here it is done in its session; if it runs in another process, that one does it;
 * else the session is opened for it.
 */

import { LoopError } from '../base/errors.js';
import type { Clock, Ids } from '../journal/clock.js';
import type { Session } from '../kernel/session.js';
import type { Approval, ApprovalAnswer } from '../protocol/approval.js';
import type { Entry } from '../protocol/entry.js';
import type { Json } from '../protocol/json.js';
import type { Archive, Known } from './archive.js';
import type { Attendance } from './attendance.js';
import { answeredAlike, answerOf, decide, NOBODY, turnOfApproval } from './decisions.js';
import type { Lanes } from './lanes.js';
import type { PeerHosts, Routed } from './peers.js';
import { idle, type Message } from './request.js';
import { sessionOf } from './result.js';

export type Decision = 'retry' | 'supply' | 'fail';

export interface ActionParts {
  readonly archive: Archive;
  readonly lanes: Lanes;
  readonly peers: PeerHosts;
  readonly clock: Clock;
  readonly ids: Ids;
  open(sessionId: string): Promise<Session>;
  /** The turn of this id, if it runs in this process. */
  running(turnId: string): Attendance | undefined;
  runningIn(sessionId: string): Attendance | undefined;
  /** Drives a turn to its end. */
  resume(turnId: string): Promise<unknown>;
}

export class SessionActions {
  private readonly parts: ActionParts;

  constructor(parts: ActionParts) {
    this.parts = parts;
  }

  async cancel(turnId: string, reason: string): Promise<boolean> {
    const { archive, peers } = this.parts;
    const live = this.parts.running(turnId)?.session;
    if (live !== undefined) {
      // Whoever hears of the first entry of a turn hears of it while it is written: then the turn is not known yet.
      await undefined;
      return live.cancel(turnId, reason);
    }
    const routed = await peers.route(sessionOf(turnId), { verb: 'cancel', turnId, reason });
    if (routed.answered) return routed.value === true;
    const known = await archive.require(turnId);
    // A cancel that was lost on its way may be what ended the turn.
    if (known.turn.ended !== undefined) return routed.retried && isCancelled(turnId, known);
    const asked = await this.inSession(turnId, (session) => session.cancel(turnId, reason));
    await this.parts.resume(turnId);
    // This one was recorded before its answer was lost, or another one came first, which is as good; or the turn ended meanwhile.
    return asked || isCancelled(turnId, await archive.require(turnId));
  }

  async answer(given: ApprovalAnswer): Promise<Approval> {
    const answer = answerOf(given);
    const turnId = turnOfApproval(answer.id);
    const { archive, clock, ids, peers } = this.parts;
    const running = this.parts.runningIn(sessionOf(turnId));
    if (running?.session !== undefined) {
      const { session, governed } = running;
      return decide(answer, { session, approvals: governed.approvals, now: clock.now(), ids });
    }
    const routed = await peers.route(sessionOf(turnId), { verb: 'answer', answer });
    if (routed.answered) return routed.value as unknown as Approval;
    const known = await archive.known(turnId);
    const taken = routed.retried && known !== undefined ? answeredAlike(answer, known) : undefined;
    if (taken !== undefined) return taken;
    return this.inSession(known === undefined ? `${NOBODY}.` : turnId, async (session) => {
      // Looked at again, now that no other process is at it.
      const approvals = known === undefined ? undefined : await archive.approvalsIn(turnId);
      return decide(answer, { session, approvals, now: clock.now(), ids });
    });
  }

  async say(given: Message): Promise<void> {
    const { archive, peers, ids } = this.parts;
    const message = { mode: 'steer' as const, ...given, id: given.id ?? ids.id() };
    const { sessionId, mode, text, id } = message;
    if (mode !== 'steer' && mode !== 'queue')
      throw new TypeError(`A message is for steer or queue, not ${String(mode)}.`);
    const signal = { id: `message ${id}`, name: mode, value: { text: String(text) } };
    const live = this.parts.runningIn(sessionId)?.session;
    if (live !== undefined) return void (await live.signal(signal));
    const routed = await peers.route(sessionId, { verb: 'say', message });
    if (routed.answered) return;
    const open = (await archive.turns(sessionId)).find(
      ({ status }) => status === 'paused' || status === 'interrupted' || status === 'running',
    );
    if (open === undefined) throw idle(sessionId);
    await this.inSession(open.turnId, (session) => session.signal(signal));
  }

  /** Says what becomes of an effect in doubt; `value` is what the tool gave back, for one that is supplied. */
  async decide(key: string, decision: Decision, by: string, value?: Json): Promise<void> {
    const [turnId = ''] = key.split('/', 1);
    const more = value === undefined ? {} : { value };
    const routed = await this.parts.peers.route(sessionOf(turnId), { verb: 'decide', key, decision, by, ...more });
    if (routed.answered) return;
    const { entries } = await this.parts.archive.require(turnId);
    const asked = entries.find((entry) => entry.type === 'effect.requested' && entry.key === key);
    const supplied = value === undefined ? {} : { value: asked?.kind === 'tool' ? { output: value } : value };
    await this.inSession(turnId, (session) => session.decide(key, decision, by, supplied)).catch((thrown: unknown) => {
      if (!isRepeated(thrown, routed, { entries, key, decision, by })) throw thrown;
    });
  }

  /** Opens a session for something short, when nothing else is at it. */
  private inSession<T>(turnId: string, work: (session: Session) => Promise<T>): Promise<T> {
    const sessionId = sessionOf(turnId);
    const { lanes, peers, open } = this.parts;
    return lanes.run({
      sessionId,
      turnId,
      work: async () => {
        const session = await open(sessionId);
        try {
          return await work(session);
        } finally {
          await session.close();
        }
      },
      elsewhere: () => peers.attend({ verb: 'attend', sessionId, turnId, events: 0, live: false }, () => {}),
    });
  }
}

/** True if the turn was asked to end before it did, whoever asked. */
function isCancelled(turnId: string, { turn, entries }: Known): boolean {
  if (turn.ended?.error?.code === 'CANCELLED') return true;
  return entries.some(({ type, key }) => type === 'cancel.requested' && key === turnId);
}

interface Decided {
  readonly entries: readonly Entry[];
  readonly key: string;
  readonly decision: Decision;
  readonly by: string;
}

/** True if a decision was refused only because it had been taken: its answer was lost on the way. */
function isRepeated(thrown: unknown, { retried }: Routed & { answered: false }, decided: Decided): boolean {
  if (!retried || !(thrown instanceof LoopError) || thrown.code !== 'DECISION_REFUSED') return false;
  const { entries, key, decision, by } = decided;
  return entries.some(
    (entry) =>
      entry.type === 'effect.decided' &&
      entry.key.startsWith(`${key}~`) &&
      entry.decision === decision &&
      entry.by === by,
  );
}
