/** Waits for turns that other processes run or will continue, without running them. */
import type { Clock } from '../journal/clock.js';
import type { TurnResult } from '../protocol/trace.js';
import type { Archive } from './archive.js';
import type { PeerHosts } from './peers.js';
import { sessionIdOf } from './turn-result.js';
import { untilClosed } from './until-closed.js';

/** How often a turn that no process runs is checked, in milliseconds. */
const POLL_MS = 250;

/** Waits for the results of turns. */
export class TurnWaiter {
  private readonly archive: Archive;
  private readonly peers: PeerHosts;
  private readonly clock: Clock;
  private readonly closing: () => AbortSignal;

  /** A wait ends with SESSION_CLOSED when the signal of `closing` is aborted. */
  constructor(archive: Archive, peers: PeerHosts, clock: Clock, closing: () => AbortSignal) {
    this.archive = archive;
    this.peers = peers;
    this.clock = clock;
    this.closing = closing;
  }

  /**
   * Waits while a process runs the turn. Returns the result of a turn that has then ended or paused; undefined if it was
   * interrupted. Throws TURN_NOT_FOUND.
   */
  async restingResult(turnId: string): Promise<TurnResult | undefined> {
    const { archive, peers, closing } = this;
    while ((await archive.status(turnId))[0]?.status === 'running')
      await untilClosed(peers.whenFinished(sessionIdOf(turnId), turnId), closing());
    return archive.restingResult(turnId);
  }

  /** Waits until some process has ended or paused the turn, and returns its result. Throws TURN_NOT_FOUND. */
  async waitForResult(turnId: string): Promise<TurnResult> {
    const { clock, closing } = this;
    for (;;) {
      const result = await this.restingResult(turnId);
      if (result !== undefined) return result;
      await untilClosed(clock.sleep(POLL_MS, closing()), closing());
    }
  }
}
