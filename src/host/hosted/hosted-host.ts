/** The hosted loops of a host, made from its parts, and what a host refuses for their sessions. */
import { LoopError } from '../../base/errors.js';
import { Findings } from '../../views/receipt/findings.js';
import { verifyLogLeaves } from '../../views/receipt/verify-log.js';
import type { Archive } from '../archive.js';
import type { HostOptions } from '../host-options.js';
import type { PeerHosts } from '../peers.js';
import type { SessionActions } from '../session-actions.js';
import type { SessionQueues } from '../session-queues.js';
import type { TurnKernel } from '../turn-kernel/turn-kernel.js';
import { sessionIdOf } from '../turn-result.js';
import type { TurnRunner } from '../turn-runner.js';
import { HostedLoops } from './hosted-loops.js';
import { hostedLoopOf } from './hosted-stream.js';
import type { PredecessorDeps } from './predecessor.js';

/** The parts of a host that its hosted loops use. */
interface HostParts {
  readonly options: HostOptions;
  readonly archive: Archive;
  readonly kernel: TurnKernel;
  readonly sessionQueues: SessionQueues;
  readonly peers: PeerHosts;
  readonly turns: TurnRunner;
  readonly actions: SessionActions;
}

/** Returns the hosted loops of a host. */
export function createHostedLoops(parts: HostParts): HostedLoops {
  const { options, archive, kernel, sessionQueues, peers, turns, actions } = parts;
  return new HostedLoops({
    options,
    archive,
    sessionQueues,
    predecessor: predecessorDeps(parts),
    whenReleased: (sessionId) => peers.whenFinished(sessionId, sessionId),
    runTurn: (request, turnOptions, hosted) => kernel.runTurn(request, turnOptions, hosted),
    cancelTurn: (turnId, reason) => actions.cancel(turnId, reason),
    usedOf: (grant) => turns.governance.usedOf(grant),
  });
}

function predecessorDeps({ options, archive, turns }: HostParts): PredecessorDeps {
  return {
    keys: options.receiptKeys ?? { signer: noKeys, list: async () => ({ keys: [] }) },
    storedEntriesOf: (sessionId) => archive.storedEntriesOf(sessionId),
    logIndexes: async (session) => {
      await turns.sealing?.flush();
      const log = await turns.sealing?.log.read();
      return log === undefined ? new Map() : verifyLogLeaves([session], log, false, new Findings()).indexes;
    },
  };
}

function noKeys(): Promise<never> {
  return Promise.reject(new LoopError('RECEIPT_NOT_FOUND', 'This store makes no receipts.'));
}

/**
 * Throws HOSTED_LOOP_CONFLICT if a session belongs to a hosted loop: its turns are requested by the loop only, and nothing
 * reaches them that the loop does not declare.
 */
export function assertNotHosted(sessionId: string | undefined): void {
  const loop = sessionId === undefined ? undefined : hostedLoopOf(sessionId);
  // guard: hosted-session-is-closed-to-others
  if (loop === undefined) return;
  const message = `The session "${sessionId}" belongs to the hosted loop "${loop}"; only the loop runs turns in it. Send it a signal.`;
  throw new LoopError('HOSTED_LOOP_CONFLICT', message, { loop });
}

/** Returns the error for a fork of a turn of a hosted loop. A copy would run past the stop policy and the grant of turns. */
export function hostedForkError(turnId: string): LoopError {
  const loop = hostedLoopOf(sessionIdOf(turnId)) ?? '';
  const reason = `The turn ${turnId} belongs to the hosted loop "${loop}", whose stop policy would not bound a copy of it`;
  const advice = `To look at it, use "rondo show" or "rondo replay"; to run it again, start the loop under another id`;
  return new LoopError('HOSTED_LOOP_CONFLICT', `${reason}. ${advice}.`, { loop, turnId });
}

/** Returns the error for a retry of a turn of a hosted loop. */
export function hostedRetryError(turnId: string): LoopError {
  const message = `The turn ${turnId} belongs to a hosted loop, which follows a failed turn with another one ("retry" in its file).`;
  return new LoopError('RETRY_REFUSED', message, { turnId });
}
