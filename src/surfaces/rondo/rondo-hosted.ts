/**
 * `rondo.hosted`: the hosted loops of a runtime, as programs use them. It adds nothing to those of the host but shorter
 * calls, and fits `signalHandler` of `rondo/signals`.
 */
import type { Host } from '../../host/host.js';
import type { HostedLoop } from '../../host/hosted/define-hosted-loop.js';
import type { HostedActor, HostedControl } from '../../host/hosted/hosted-loops.js';
import type { Clock, Ids } from '../../journal/clock.js';
import { CODE_ORIGIN } from '../../loops/origin.js';
import type {
  HostedLoopDocument,
  HostedLoopStatus,
  HostedSignalDelivery,
  SignalReceipt,
} from '../../protocol/hosted-loop.js';
import type { Json } from '../../protocol/json.js';
import type { OutgoingHandoff } from '../../views/hosted-loop.js';
import type { HostedTurnListing } from '../../views/hosted-turns.js';

/** A handoff to a hosted loop: the receipt of the turn that made it, and what it asks for. */
export type Handoff = OutgoingHandoff;

/** Options of a signal to a hosted loop. */
export interface HostedSignalOptions {
  /**
   * The delivery id: a second signal with it has no effect.
   * @default a new id
   */
  readonly id?: string;
}

/**
 * The hosted loops of a runtime: loops whose turns a worker runs one after another, only while their stop policies allow
 * it. It is the target of `signalHandler`.
 *
 * @example
 * ```ts
 * await rondo.hosted.start(watch, { by: 'ada' });
 * createServer(nodeListener(signalHandler(rondo.hosted))).listen(3000);
 * await rondo.work();
 * ```
 */
export class RondoHosted {
  private readonly host: Host;
  private readonly clock: Clock;
  private readonly ids: Ids;

  /** @internal */
  constructor(host: Host, { clock, ids }: { readonly clock: Clock; readonly ids: Ids }) {
    this.host = host;
    this.clock = clock;
    this.ids = ids;
  }

  /**
   * Starts a hosted loop, or returns the status of one that was started with the same content. The loop and the function
   * that derives its inputs are registered. A worker runs its turns: `rondo.work()` or `rondo worker`. Throws
   * DEFINITION_INVALID if its first turn could not run, LOOP_NOT_FOUND if the loop is not registered, GRANT_CONFLICT if the
   * id of its grant is known with other content, HOSTED_LOOP_CONFLICT if its own id is or has stopped, and
   * RECEIPT_NOT_FOUND if the store makes no receipts.
   */
  async start(loop: HostedLoop | HostedLoopDocument, actor: HostedActor): Promise<HostedLoopStatus> {
    assertActor(actor);
    if ('document' in loop) this.registerLoop(loop);
    return this.host.hosted.start(loop, actor);
  }

  /** Registers hosted loops in code that were started before, so that a worker of this process runs their turns. */
  register(...loops: readonly HostedLoop[]): void {
    for (const loop of loops) {
      this.registerLoop(loop);
      this.host.hosted.register(loop);
    }
  }

  /** Returns the status of a hosted loop. Throws HOSTED_LOOP_NOT_FOUND. */
  status(loop: string): Promise<HostedLoopStatus> {
    return this.host.hosted.status(loop);
  }

  /** Returns the status of all hosted loops of the store, sorted by id. */
  list(): Promise<readonly HostedLoopStatus[]> {
    return this.host.hosted.list();
  }

  /** Returns the turns of a hosted loop, oldest first. Throws HOSTED_LOOP_NOT_FOUND. */
  turns(loop: string): Promise<readonly HostedTurnListing[]> {
    return this.host.hosted.turns(loop);
  }

  /** Returns the document of a hosted loop; undefined if it was not started. */
  definition(loop: string): Promise<HostedLoopDocument | undefined> {
    return this.host.hosted.definition(loop);
  }

  /** Pauses a hosted loop: no turn starts until it is resumed. A turn that runs goes on. */
  async pause(loop: string, control: HostedControl): Promise<HostedLoopStatus> {
    assertActor(control);
    return this.host.hosted.pause(loop, control);
  }

  /** Resumes a paused hosted loop. What was due meanwhile follows its document. */
  async resume(loop: string, control: HostedControl): Promise<HostedLoopStatus> {
    assertActor(control);
    return this.host.hosted.resume(loop, control);
  }

  /** Stops a hosted loop for good, and cancels its open turn. */
  async stop(loop: string, control: HostedControl): Promise<HostedLoopStatus> {
    assertActor(control);
    return this.host.hosted.stop(loop, control);
  }

  /**
   * Sends a signal to a hosted loop, as its operator; it causes a turn. Returns `duplicate` if a signal with this delivery
   * id was received before. Throws SIGNAL_REFUSED if the loop does not declare the signal, and INPUT_VALIDATION_FAILED if
   * the payload does not fit.
   */
  signal(loop: string, name: string, payload?: Json, options: HostedSignalOptions = {}): Promise<SignalReceipt> {
    const { id = this.ids.id() } = options;
    return this.host.hosted.signal({ loop, name, id, ...(payload !== undefined && { payload }) });
  }

  /** Hands the work of a turn over to another hosted loop, which must accept handoffs of the sender. Throws HANDOFF_REFUSED. */
  handoff(handoff: Handoff): Promise<SignalReceipt> {
    return this.host.hosted.handoff(handoff);
  }

  /** Puts a signal that `signalHandler` has authenticated into the inbox of its loop. Programs call `signal` instead. */
  deliver(delivery: HostedSignalDelivery): Promise<SignalReceipt> {
    // guard: delivered-signal-needs-its-method
    return this.host.hosted.signal(delivery, 'hmac-sha256');
  }

  /** Returns the time of the runtime, in milliseconds since 1970. */
  now(): number {
    return this.clock.now();
  }

  private registerLoop({ loop }: HostedLoop): void {
    if (loop !== undefined) this.host.registry.add(loop, CODE_ORIGIN);
  }
}

/** Throws a TypeError unless a name is given, which is recorded. */
function assertActor({ by, reason }: HostedControl): void {
  if (typeof by !== 'string' || by.trim() === '')
    throw new TypeError('`by` names who does something to a hosted loop, and is recorded: it must be text.');
  if (reason !== undefined && typeof reason !== 'string') throw new TypeError('The reason must be text.');
}
