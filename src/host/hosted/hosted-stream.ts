/**
 * The streams of hosted loops: one shared stream for each loop, to which every process appends by compare and retry, and
 * its row in the index of due turns. The stream is a cache of nothing: what it says is what has happened.
 */
import { Fault } from '../../base/errors.js';
import type { Clock } from '../../journal/clock.js';
import type { DueChange } from '../../journal/due-turns.js';
import { RESERVED_SESSION_PREFIX } from '../../journal/reserved-sessions.js';
import { type Decide, SharedStream } from '../../journal/shared-stream.js';
import type { Store } from '../../journal/store.js';
import type { HostedLoopDocument } from '../../protocol/hosted-loop.js';
import type { Json } from '../../protocol/json.js';
import { HostedLoopState } from '../../views/hosted-loop.js';
import type { LengthWitness } from '../host-options.js';
import { turnIdOfKey } from '../turn-request.js';

/** The stream of a hosted loop, as one process uses it. */
export type HostedStream = SharedStream<HostedLoopState>;

const STREAM_PREFIX = `${RESERVED_SESSION_PREFIX}hosted:`;
const SESSION_PREFIX = 'hosted:';
/** How many streams stay open in a process. Beyond it, the one that was opened first is opened again when it is needed. */
const MAX_OPEN_STREAMS = 5000;

/** Returns the name of the stream of a hosted loop. Its lease decides which process runs its turns. */
export function hostedStreamOf(loop: string): string {
  return `${STREAM_PREFIX}${loop}`;
}

/** True for the name of the stream of a hosted loop. */
export function isHostedStream(session: string): boolean {
  return session.startsWith(STREAM_PREFIX);
}

/** Returns the session of a turn of a hosted loop: one for each turn, or one for all if turns see the ones before. */
export function hostedSessionOf(loop: string, turn: number, history: 'none' | 'session'): string {
  return history === 'session' ? `${SESSION_PREFIX}${loop}` : `${SESSION_PREFIX}${loop}:${turn}`;
}

/** Returns the hosted loop that a session or a stream belongs to; undefined for any other session. */
export function hostedLoopOf(session: string): string | undefined {
  if (isHostedStream(session)) return session.slice(STREAM_PREFIX.length);
  if (!session.startsWith(SESSION_PREFIX)) return undefined;
  const [loop = ''] = session.slice(SESSION_PREFIX.length).split(':', 1);
  return loop;
}

/** Returns the session whose lease decides which process works on a session: the stream of the loop for hosted turns. */
export function leasedSessionOf(session: string): string {
  const loop = hostedLoopOf(session);
  return loop === undefined ? session : hostedStreamOf(loop);
}

/** Returns the idempotency key of a turn. */
export function hostedTurnKey(loop: string, turn: number): string {
  return `${loop}#${turn}`;
}

/** Returns the document of a loop that was started. */
export function documentOf({ now: { started } }: HostedLoopState): HostedLoopDocument {
  if (started === undefined) throw new Error('The hosted loop was not started.');
  return started.document;
}

/** Returns the id of a turn of a hosted loop. */
export function hostedTurnId({ id, turn }: HostedLoopDocument, number: number): string {
  return turnIdOfKey(hostedSessionOf(id, number, turn?.history ?? 'none'), hostedTurnKey(id, number));
}

/** The open streams of one process. */
export class HostedStreams {
  private readonly store: Store;
  private readonly clock: Clock;
  private readonly witness: LengthWitness | undefined;
  private readonly open = new Map<string, Promise<HostedStream>>();

  /** `witness` keeps the lengths of the streams outside of the store. */
  constructor(store: Store, clock: Clock, witness: LengthWitness | undefined) {
    this.store = store;
    this.clock = clock;
    this.witness = witness;
  }

  /** Returns the ids of all hosted loops of the store. */
  async list(): Promise<readonly string[]> {
    const sessions = await this.store.journal.list();
    return sessions.flatMap(({ session }) => (isHostedStream(session) ? [session.slice(STREAM_PREFIX.length)] : []));
  }

  /** Returns the stream of a loop with everything that is stored. Creates it if it does not exist. */
  async get(loop: string): Promise<HostedStream> {
    const opening = this.open.get(loop);
    const known = await opening?.catch(() => undefined);
    if (known !== undefined && known.failure === undefined) {
      await known.refresh();
      return known;
    }
    if (this.open.get(loop) !== opening) return this.get(loop);
    const opened = this.openStream(loop);
    this.open.set(loop, opened);
    const [oldest] = this.open.keys();
    if (this.open.size > MAX_OPEN_STREAMS && oldest !== undefined) this.open.delete(oldest);
    return opened;
  }

  /** Opens a stream. Throws STORE_DAMAGED if it is shorter than it was: turns that were run would be run again. */
  private async openStream(loop: string): Promise<HostedStream> {
    const { store, clock, witness } = this;
    const name = hostedStreamOf(loop);
    const create = (saved?: Json): HostedLoopState => new HostedLoopState(saved);
    const stream = await SharedStream.open({ store, clock, name, create, due: dueChangeOf });
    const known = (await witness?.read(name)) ?? 0;
    // guard: shortened-hosted-stream-refused
    if (await stream.reaches(known)) return stream;
    const message = `The stream of the hosted loop "${loop}" has ${stream.length} entries, and had ${known}. Restore the store from a backup.`;
    throw new Fault('STORE_DAMAGED', message, { loop });
  }

  /**
   * Appends what a decision adds, and waits until it is durable. Returns false if it was refused. The decision is made again
   * if another process was faster, so what it adds depends on the state that it gets, and on nothing that was read before.
   */
  async decide(stream: HostedStream, decision: Decide<HostedLoopState>): Promise<boolean> {
    const { isAccepted, durable } = stream.update(decision);
    if (!isAccepted || !(await durable)) return false;
    await this.keepLength(stream);
    return true;
  }

  /**
   * Keeps the length of a stream outside of the store: who brings an older copy of the store back undoes no stop, and runs
   * no turn again. An error is ignored: the length is then kept later.
   */
  private async keepLength(stream: HostedStream): Promise<void> {
    const loop = stream.state.now.started?.document.id;
    if (this.witness === undefined || loop === undefined) return;
    const length = await stream.durableLength();
    // guard: hosted-stream-length-kept
    await this.witness.write(hostedStreamOf(loop), length).catch(() => undefined);
  }

  /** Returns the stream of a loop that was started; undefined if the store has none. Creates nothing. */
  async find(loop: string): Promise<HostedStream | undefined> {
    if (!this.open.has(loop) && !(await this.exists(loop))) return undefined;
    const stream = await this.get(loop);
    return stream.state.now.started === undefined ? undefined : stream;
  }

  private async exists(loop: string): Promise<boolean> {
    for await (const batch of this.store.journal.read(hostedStreamOf(loop), 0)) if (batch.length > 0) return true;
    return false;
  }
}

/** Returns when a process has to work on a loop. The row has the name of the loop in place of a turn. */
export function dueChangeOf(state: HostedLoopState): DueChange {
  return { turn: state.now.started?.document.id ?? '', dueAt: dueTimeOf(state) };
}

/** Returns when a process has to work on a loop, in milliseconds since the epoch; undefined for never. */
export function dueTimeOf(state: HostedLoopState): number | undefined {
  const { started, open, stopped, paused, plan, retryAt } = state.now;
  if (started === undefined) return undefined;
  // Also of a stopped loop, whose last turn may have made them.
  // guard: undelivered-handoffs-are-due
  if (state.handoffs.length > 0) return 0;
  // A turn that is open when the loop stops is still to be cancelled.
  if (stopped !== undefined) return open === undefined ? undefined : 0;
  const { deadline } = started.document.stop;
  const times = deadline === undefined ? [] : [Date.parse(deadline)];
  // guard: paused-loop-is-not-due
  if (paused === undefined) {
    if (open !== undefined && open.waitsFor === undefined) return 0;
    if (open === undefined) times.push(...nextTimes(state.signals[0]?.at, plan?.dueAt, retryAt));
  }
  return times.length === 0 ? undefined : Math.min(...times);
}

/** A failed turn delays everything else until it is tried again. */
function nextTimes(signalAt: number | undefined, dueAt: number | undefined, retryAt: number | undefined): number[] {
  if (retryAt !== undefined) return [retryAt];
  return [signalAt, dueAt].filter((time) => time !== undefined);
}
