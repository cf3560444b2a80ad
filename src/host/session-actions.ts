/**
 * What is done to a turn from outside while it runs, waits or is interrupted: cancel it, answer an approval, send it a message,
 * decide on an effect in doubt. If the turn runs here it is done in its session; if it runs in another process, that one does it;
 * else the session is opened for it.
 */

import { LoopError } from '../base/errors.js';
import type { Clock, Ids } from '../journal/clock.js';
import type { Session } from '../kernel/session.js';
import { turnIdOfApproval, validatedAnswer } from '../policy/approval-answer.js';
import type { Approval, ApprovalAnswer } from '../protocol/approval.js';
import type { Entry } from '../protocol/entry.js';
import type { Json } from '../protocol/json.js';
import { answerApproval, findIdenticalAnswer, REFUSALS_SESSION } from './approval-answers.js';
import type { Archive, StoredTurn } from './archive.js';
import type { PeerHosts, RoutedReply } from './peers.js';
import type { RunningTurn } from './running-turn.js';
import type { SessionQueues } from './session-queues.js';
import { noOpenTurnError, type SessionMessage } from './turn-request.js';
import { sessionIdOf } from './turn-result.js';

export type Resolution = 'retry' | 'supply' | 'fail';

export interface SessionActionDeps {
  readonly archive: Archive;
  readonly sessionQueues: SessionQueues;
  readonly peers: PeerHosts;
  readonly clock: Clock;
  readonly ids: Ids;
  openSession(sessionId: string): Promise<Session>;
  /** The turn of this id, if it runs in this process. */
  runningTurn(turnId: string): RunningTurn | undefined;
  runningTurnIn(sessionId: string): RunningTurn | undefined;
  /** Drives a turn to its end. */
  resume(turnId: string): Promise<unknown>;
}

export class SessionActions {
  private readonly deps: SessionActionDeps;

  constructor(parts: SessionActionDeps) {
    this.deps = parts;
  }

  async cancel(turnId: string, reason: string): Promise<boolean> {
    const { archive, peers } = this.deps;
    const live = this.deps.runningTurn(turnId)?.session;
    if (live !== undefined) {
      // Whoever hears of the first entry of a turn hears of it while it is written: then the turn is not known yet.
      await undefined;
      return live.cancel(turnId, reason);
    }
    const routed = await peers.route(sessionIdOf(turnId), { verb: 'cancel', turnId, reason });
    if (routed.answered) return routed.value === true;
    const known = await archive.get(turnId);
    // A cancel that was lost on its way may be what ended the turn.
    if (known.turn.endedEntry !== undefined) return routed.retried && wasCancelled(turnId, known);
    const asked = await this.withSession(turnId, (session) => session.cancel(turnId, reason));
    await this.deps.resume(turnId);
    // This one was recorded before its answer was lost, or another one came first, which is as good; or the turn ended meanwhile.
    return asked || wasCancelled(turnId, await archive.get(turnId));
  }

  async answer(given: ApprovalAnswer): Promise<Approval> {
    const answer = validatedAnswer(given);
    const turnId = turnIdOfApproval(answer.id);
    const { archive, clock, ids, peers } = this.deps;
    const running = this.deps.runningTurnIn(sessionIdOf(turnId));
    if (running?.session !== undefined) {
      const { session, agentState } = running;
      return answerApproval(answer, { session, approvals: agentState.approvals, now: clock.now(), ids });
    }
    const routed = await peers.route(sessionIdOf(turnId), { verb: 'answer', answer });
    if (routed.answered) return routed.value as unknown as Approval;
    const known = await archive.find(turnId);
    const taken = routed.retried && known !== undefined ? findIdenticalAnswer(answer, known) : undefined;
    if (taken !== undefined) return taken;
    return this.withSession(known === undefined ? `${REFUSALS_SESSION}.` : turnId, async (session) => {
      // Looked at again, now that no other process is at it.
      const approvals = known === undefined ? undefined : await archive.approvalsIn(turnId);
      return answerApproval(answer, { session, approvals, now: clock.now(), ids });
    });
  }

  async sendMessage(given: SessionMessage): Promise<void> {
    const { archive, peers, ids } = this.deps;
    const message = { mode: 'steer' as const, ...given, id: given.id ?? ids.id() };
    const { sessionId, mode, text, id } = message;
    if (mode !== 'steer' && mode !== 'queue')
      throw new TypeError(`A message is for steer or queue, not ${String(mode)}.`);
    const signal = { id: `message ${id}`, name: mode, value: { text: String(text) } };
    const live = this.deps.runningTurnIn(sessionId)?.session;
    if (live !== undefined) return void (await live.signal(signal));
    const routed = await peers.route(sessionId, { verb: 'send', message });
    if (routed.answered) return;
    const open = (await archive.turns(sessionId)).find(
      ({ status }) => status === 'paused' || status === 'interrupted' || status === 'running',
    );
    if (open === undefined) throw noOpenTurnError(sessionId);
    await this.withSession(open.turnId, (session) => session.signal(signal));
  }

  /** Says what becomes of an effect in doubt; `value` is what the tool gave back, for one that is supplied. */
  async resolveEffect(key: string, decision: Resolution, by: string, value?: Json): Promise<void> {
    const [turnId = ''] = key.split('/', 1);
    const more = value === undefined ? {} : { value };
    const routed = await this.deps.peers.route(sessionIdOf(turnId), {
      verb: 'resolve',
      key,
      resolution: decision,
      by,
      ...more,
    });
    if (routed.answered) return;
    const { entries } = await this.deps.archive.get(turnId);
    const asked = entries.find((entry) => entry.type === 'effect.requested' && entry.key === key);
    const supplied = value === undefined ? {} : { value: asked?.kind === 'tool' ? { output: value } : value };
    await this.withSession(turnId, (session) => session.resolveEffect(key, decision, by, supplied)).catch(
      (thrown: unknown) => {
        if (!isRepeatedResolution(thrown, routed, { entries, key, resolution: decision, by })) throw thrown;
      },
    );
  }

  /** Opens a session for something short, when nothing else is at it. */
  private withSession<T>(turnId: string, work: (session: Session) => Promise<T>): Promise<T> {
    const sessionId = sessionIdOf(turnId);
    const { sessionQueues, peers, openSession } = this.deps;
    return sessionQueues.run({
      sessionId,
      turnId,
      perform: async () => {
        const session = await openSession(sessionId);
        try {
          return await work(session);
        } finally {
          await session.close();
        }
      },
      whileHeldElsewhere: () =>
        peers.followTurn({ verb: 'follow', sessionId, turnId, events: 0, live: false }, () => {}),
    });
  }
}

/** True if the turn was asked to end before it did, whoever asked. */
function wasCancelled(turnId: string, { turn, entries }: StoredTurn): boolean {
  if (turn.endedEntry?.error?.code === 'CANCELLED') return true;
  return entries.some(({ type, key }) => type === 'cancel.requested' && key === turnId);
}

interface ResolutionAttempt {
  readonly entries: readonly Entry[];
  readonly key: string;
  readonly resolution: Resolution;
  readonly by: string;
}

/** True if a decision was refused only because it had been taken: its answer was lost on the way. */
function isRepeatedResolution(
  thrown: unknown,
  { retried }: RoutedReply & { answered: false },
  decided: ResolutionAttempt,
): boolean {
  if (!retried || !(thrown instanceof LoopError) || thrown.code !== 'ANSWER_REFUSED') return false;
  const { entries, key, resolution, by } = decided;
  return entries.some(
    (entry) =>
      entry.type === 'effect.resolved' &&
      entry.key.startsWith(`${key}~`) &&
      entry.resolution === resolution &&
      entry.by === by,
  );
}
