/**
 * Actions on turns from outside: cancel a turn, answer an approval, send a message or a signal, resolve an effect in
 * doubt. An action uses the open session if the turn runs in this process. Otherwise it is sent to the process that holds the
 * session or, if there is none, performed here when the session is free. `resolveEffect` never uses the open session.
 */

import { LoopError } from '../base/errors.js';
import type { Clock, Ids } from '../journal/clock.js';
import { expandLeaves } from '../journal/leaf-entries.js';
import type { Session } from '../kernel/session.js';
import { turnIdOfApproval, validatedAnswer } from '../policy/approval-answer.js';
import type { Approval, ApprovalAnswer } from '../protocol/approval.js';
import type { Entry } from '../protocol/entry.js';
import type { Json } from '../protocol/json.js';
import { receiptHeadView, receiptsIn, type SealedReceipt } from '../views/receipt/sealed-receipts.js';
import { answerApproval, findAnsweredApproval, REFUSALS_SESSION_ID } from './approval-answers.js';
import { type Archive, type StoredTurn, turnNotFoundError } from './archive.js';
import type { PeerHosts, RoutedReply } from './peers.js';
import { assertNotClosed } from './receipts/closed-session.js';
import type { SessionQueues } from './session-queues.js';
import { peerRequestOf, type SignalRequest, signalDeliveryOf, signalOf } from './signal-request.js';
import { noOpenTurnError, type SessionMessage } from './turn-request.js';
import { sessionIdOf } from './turn-result.js';
import type { TurnRunner } from './turn-runner.js';

/** How an effect in doubt is resolved: it is retried, its result is supplied, or it fails. */
export type Resolution = 'retry' | 'supply' | 'fail';

/** What the actions need of the host. */
export interface SessionActionDeps {
  readonly archive: Archive;
  readonly sessionQueues: SessionQueues;
  readonly peers: PeerHosts;
  readonly clock: Clock;
  readonly ids: Ids;
  readonly turns: TurnRunner;
  /** Continues a turn until it ends or pauses. */
  resume(turnId: string): Promise<unknown>;
}

/** The actions of one host. */
export class SessionActions {
  private readonly deps: SessionActionDeps;

  constructor(deps: SessionActionDeps) {
    this.deps = deps;
  }

  /** Cancels a turn; see `Host.cancel`. */
  async cancel(turnId: string, reason: string): Promise<boolean> {
    const { archive, peers } = this.deps;
    const session = this.deps.turns.get(turnId)?.session;
    if (session !== undefined) {
      // A listener can cancel during the first entry of the turn, before the session has registered the turn.
      await undefined;
      return session.cancel(turnId, reason);
    }
    const routed = await peers.route(sessionIdOf(turnId), { verb: 'cancel', turnId, reason });
    if (routed.answered) return routed.value === true;
    const stored = await archive.get(turnId);
    // A first request whose reply was lost may have ended the turn.
    if (stored.turn.endedEntry !== undefined) return routed.retried && wasCancelled(turnId, stored);
    const isRecorded = await this.withOpenSession(turnId, (opened) => opened.cancel(turnId, reason));
    await this.deps.resume(turnId);
    // Without a new record, an earlier cancel is recorded (perhaps this one, with a lost reply), or the turn ended
    // meanwhile.
    return isRecorded || wasCancelled(turnId, await archive.get(turnId));
  }

  /**
   * Answers an approval. Throws ANSWER_REFUSED, and journals the refusal, if the answer is not accepted. Throws a
   * TypeError if it is malformed.
   */
  async answer(unvalidated: ApprovalAnswer): Promise<Approval> {
    const answer = validatedAnswer(unvalidated);
    const turnId = turnIdOfApproval(answer.id);
    const { archive, clock, ids, peers } = this.deps;
    const running = this.deps.turns.runningIn(sessionIdOf(turnId));
    if (running?.session !== undefined) {
      const { session, agentState } = running;
      // A turn without agents does not know the approvals of earlier turns of its session.
      const isKnown = agentState.approvals.get(answer.id) !== undefined;
      const approvals = isKnown ? agentState.approvals : await archive.approvalsIn(turnId);
      const isStillRunning = this.deps.turns.runningIn(sessionIdOf(turnId)) === running;
      if (isStillRunning) return answerApproval(answer, { session, approvals, now: clock.now(), ids });
    }
    const routed = await peers.route(sessionIdOf(turnId), { verb: 'answer', answer });
    if (routed.answered) return routed.value as unknown as Approval;
    const stored = await archive.find(turnId);
    const answered = routed.retried && stored !== undefined ? findAnsweredApproval(answer, stored) : undefined;
    if (answered !== undefined) return answered;
    return this.withOpenSession(stored === undefined ? `${REFUSALS_SESSION_ID}.` : turnId, async (session) => {
      // Read under the lease: another process may have written entries before.
      const approvals = stored === undefined ? undefined : await archive.approvalsIn(turnId);
      return answerApproval(answer, { session, approvals, now: clock.now(), ids });
    });
  }

  /**
   * Sends a message to the running, paused or interrupted turn of a session. Throws TURN_NOT_FOUND if there is none,
   * and a TypeError for an unknown mode.
   */
  async sendMessage(input: SessionMessage): Promise<void> {
    const { archive, peers, ids } = this.deps;
    const message = { mode: 'steer' as const, ...input, id: input.id ?? ids.id() };
    const { sessionId, mode, text, id } = message;
    if (mode !== 'steer' && mode !== 'queue')
      throw new TypeError(`The mode of a message is "steer" or "queue", not "${String(mode)}".`);
    const signal = { id: `message ${id}`, name: mode, value: { text: String(text) } };
    const running = this.deps.turns.runningIn(sessionId)?.session;
    if (running !== undefined) return void (await running.signal(signal));
    const routed = await peers.route(sessionId, { verb: 'send', message });
    if (routed.answered) return;
    const open = (await archive.turns(sessionId)).find(
      ({ status }) => status === 'paused' || status === 'interrupted' || status === 'running',
    );
    if (open === undefined) throw noOpenTurnError(sessionId);
    await this.withOpenSession(open.turnId, (session) => session.signal(signal));
  }

  /**
   * Delivers a signal; see `Host.signal`. A signal with a new id counts as delivered now, even if the first request to
   * another process succeeded and the reply was lost.
   */
  async signal(request: SignalRequest): Promise<boolean> {
    const { archive, peers, ids, sessionQueues } = this.deps;
    const delivery = signalDeliveryOf(request, () => ids.id());
    const { sessionId, turnId } = delivery;
    if (sessionId === '') throw turnNotFoundError(turnId ?? sessionId);
    const signal = signalOf(delivery);
    let isRetried = false;
    for (;;) {
      const running = this.deps.turns.runningIn(sessionId);
      if (running !== undefined && turnId !== undefined && turnId !== running.turnId && !(await archive.has(turnId)))
        throw turnNotFoundError(turnId);
      const session = this.deps.turns.runningIn(sessionId)?.session;
      if (session !== undefined) return session.signal(signal);
      const routed = await peers.route(sessionId, { verb: 'signal', request: peerRequestOf(delivery) });
      if (routed.answered) return routed.value === true;
      isRetried ||= routed.retried;
      const task = sessionQueues.lastTask(sessionId);
      if (task === undefined) break;
      // A turn that starts here must receive the signal while it runs: it may wait for it until a timer fires.
      await this.deps.turns.whenRunning(sessionId, task);
    }
    const assertKnown = async (): Promise<void> => {
      const isKnown = turnId === undefined ? (await archive.turns(sessionId)).length > 0 : await archive.has(turnId);
      if (!isKnown) throw turnNotFoundError(turnId ?? sessionId);
    };
    const isNew = await this.withOpenSession(turnId ?? `${sessionId}.`, (opened) => opened.signal(signal), assertKnown);
    return isNew || (isRetried && request.id === undefined);
  }

  /** Resolves an effect in doubt; see `Host.resolveEffect`. `value` is the result of the effect, for `supply`. */
  async resolveEffect(key: string, resolution: Resolution, by: string, value?: Json): Promise<void> {
    const [turnId = ''] = key.split('/', 1);
    const routed = await this.deps.peers.route(sessionIdOf(turnId), {
      verb: 'resolve',
      key,
      resolution,
      by,
      ...(value !== undefined && { value }),
    });
    if (routed.answered) return;
    const { entries } = await this.deps.archive.get(turnId);
    const requested = expandLeaves(entries).find((entry) => entry.type === 'effect.requested' && entry.key === key);
    const supplied = value === undefined ? {} : { value: requested?.kind === 'tool' ? { output: value } : value };
    await this.withOpenSession(turnId, (session) => session.resolveEffect(key, resolution, by, supplied)).catch(
      (thrown: unknown) => {
        if (!isRepeatedResolution(thrown, routed, { entries, key, resolution, by })) throw thrown;
      },
    );
  }

  /** Closes a session with its terminal receipt; see `Host.closeSession`. */
  async closeSession(sessionId: string): Promise<SealedReceipt> {
    const { archive, turns } = this.deps;
    const { sealing } = turns;
    if (sealing === undefined) throw new LoopError('RECEIPT_NOT_FOUND', 'This store makes no receipts.');
    const assertClosable = async (): Promise<void> => {
      // The lease under which the session is closed appears as a turn without a name.
      const statuses = (await archive.turns(sessionId)).filter(({ turnId }) => turnId !== `${sessionId}.`);
      if (statuses.length === 0) throw turnNotFoundError(sessionId);
      const open = statuses.find(({ endedAt }) => endedAt === undefined);
      if (open === undefined) return;
      const message = `Session "${sessionId}" cannot be closed: turn ${open.turnId} has not ended. Finish or cancel it.`;
      throw new LoopError('SESSION_SEALED', message, { sessionId, turnId: open.turnId });
    };
    return this.withSession(
      `${sessionId}.`,
      async (session) => {
        if (!session.state(receiptHeadView).isClosed) return sealing.close(session);
        const closed = receiptsIn(await archive.storedEntriesOf(sessionId)).at(-1);
        if (closed === undefined) throw turnNotFoundError(sessionId);
        return closed;
      },
      assertClosable,
    );
  }

  /** Like `withSession`; throws SESSION_SEALED if the session is closed. */
  private withOpenSession<T>(
    turnId: string,
    work: (session: Session) => Promise<T>,
    beforeOpening?: () => Promise<void>,
  ): Promise<T> {
    const hasReceipts = this.deps.turns.sealing !== undefined;
    return this.withSession(
      turnId,
      (session) => {
        assertNotClosed(session, hasReceipts);
        return work(session);
      },
      beforeOpening,
    );
  }

  /**
   * Opens the session of a turn for one short task, once the session is free. `beforeOpening` may throw: opening would
   * create a session that does not exist.
   */
  private withSession<T>(
    turnId: string,
    work: (session: Session) => Promise<T>,
    beforeOpening?: () => Promise<void>,
  ): Promise<T> {
    const sessionId = sessionIdOf(turnId);
    const { sessionQueues, peers, turns } = this.deps;
    return sessionQueues.run({
      sessionId,
      turnId,
      perform: async () => {
        await beforeOpening?.();
        const session = await turns.openSession(sessionId);
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

/** Returns true if a cancel of the turn is recorded, from any caller, or the turn ended with CANCELLED. */
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

/**
 * Returns true if a resolution was refused only because it is recorded already: its first request succeeded and the
 * reply was lost.
 */
function isRepeatedResolution(
  thrown: unknown,
  { retried }: RoutedReply & { answered: false },
  attempt: ResolutionAttempt,
): boolean {
  if (!retried || !(thrown instanceof LoopError) || thrown.code !== 'ANSWER_REFUSED') return false;
  const { entries, key, resolution, by } = attempt;
  return entries.some(
    (entry) =>
      entry.type === 'effect.resolved' &&
      entry.key.startsWith(`${key}~`) &&
      entry.resolution === resolution &&
      entry.by === by,
  );
}
