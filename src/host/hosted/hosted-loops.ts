/**
 * The hosted loops of a store: starts, inspects, pauses, resumes and stops them, accepts what is sent to them, and
 * performs the next step of one for a worker. Any process may do any of this; a lease decides which one runs a turn.
 */
import { LoopError } from '../../base/errors.js';
import { namesHint } from '../../base/nearest-word.js';
import { loopNotFoundError } from '../../loops/failed-definition.js';
import type { Registry } from '../../loops/registry.js';
import { parseGrant } from '../../policy/grant.js';
import type {
  HostedLoopDocument,
  HostedLoopStatus,
  HostedSignalDelivery,
  SignalReceipt,
} from '../../protocol/hosted-loop.js';
import type { Json } from '../../protocol/json.js';
import type { TurnResult } from '../../protocol/trace.js';
import {
  HOSTED_CONTINUED,
  HOSTED_PAUSED,
  HOSTED_PLANNED,
  HOSTED_RESUMED,
  HOSTED_STARTED,
  HOSTED_STOPPED,
  type HostedEntry,
  type OutgoingHandoff,
  type StartedLoop,
} from '../../views/hosted-loop.js';
import { type HostedTurnListing, hostedTurnsOf } from '../../views/hosted-turns.js';
import { isStoreDamage } from '../archive.js';
import type { HostOptions, TurnOptions } from '../host-options.js';
import type { SessionQueues } from '../session-queues.js';
import { sessionIdOf } from '../turn-result.js';
import type { HostedLoopListener } from '../worker.js';
import type { HostedLoop, NextInput } from './define-hosted-loop.js';
import { effectiveGrant } from './grant-flaws.js';
import { hostedLoopDigest, parseHostedLoop } from './hosted-document.js';
import { type DriverDeps, HostedDriver } from './hosted-driver.js';
import { actionOf, damagedLoopStatus, statusOf } from './hosted-status.js';
import {
  documentOf,
  type HostedStream,
  HostedStreams,
  hostedLoopOf,
  hostedStreamOf,
  hostedTurnId,
} from './hosted-stream.js';
import { HostedInbox, type SignalMethod } from './inbox.js';
import { loopFlawsOf, trustFlawOf } from './loop-flaws.js';
import { verifyPredecessor } from './predecessor.js';
import { firstDue, isEventDriven } from './schedule.js';
import { sharedSecretOf } from './shared-secrets.js';

/** What hosted loops need of their host. */
export interface HostedLoopsDeps extends Omit<DriverDeps, 'codeOf' | 'deliverHandoffs' | 'streams' | 'clock'> {
  readonly options: HostOptions;
  readonly sessionQueues: SessionQueues;
  /** Resolves when the process that holds the lease of a session has given it up. */
  whenReleased(sessionId: string): Promise<void>;
}

/** Who does something to a hosted loop. It is recorded. */
export interface HostedActor {
  readonly by: string;
}

/** Who starts a hosted loop, and where its document comes from. */
export interface HostedStart extends HostedActor {
  /**
   * The directory of its file, if the operator does not trust it. Its turns run nothing that needs trust.
   * @default the document is the operator's
   */
  readonly untrustedDirectory?: string | undefined;
  /**
   * The directory of its file. If the operator no longer trusts it, turns that need trust wait until it is trusted again.
   * @default the document has no file
   */
  readonly directory?: string | undefined;
}

/** Who controls a hosted loop, and why. It is recorded. */
export interface HostedControl extends HostedActor {
  readonly reason?: string;
}

/** The hosted loops of one host. */
export class HostedLoops {
  private readonly deps: HostedLoopsDeps;
  private readonly streams: HostedStreams;
  private readonly inbox: HostedInbox;
  private readonly driver: HostedDriver;
  private readonly code = new Map<string, NextInput>();

  constructor(deps: HostedLoopsDeps) {
    const { options, predecessor } = deps;
    const { store, clock, lengthWitness } = options;
    this.deps = deps;
    this.streams = new HostedStreams(store, clock, lengthWitness);
    this.inbox = new HostedInbox({ clock, streams: this.streams, predecessor, options });
    const deliverHandoffs = (stream: HostedStream): Promise<void> => this.inbox.deliverHandoffs(stream);
    const codeOf = (loop: string): NextInput | undefined => this.code.get(loop);
    this.driver = new HostedDriver({ ...deps, clock, streams: this.streams, deliverHandoffs, codeOf });
  }

  /**
   * Starts a hosted loop, or returns the status of one that was started with the same content. Nothing runs here: a worker
   * runs its turns. Throws DEFINITION_INVALID or GRANT_INVALID if the document is invalid or its first turn could not run,
   * LOOP_NOT_FOUND if its loop is not registered, GRANT_CONFLICT if the id of its grant is known with other content, and
   * HOSTED_LOOP_CONFLICT if its own id is, or if it has stopped.
   */
  async start(loop: HostedLoop | HostedLoopDocument, start: HostedStart): Promise<HostedLoopStatus> {
    const started = this.startedLoop(loop, start);
    const { document, digest, at } = started;
    if (this.deps.options.receiptKeys === undefined)
      throw new LoopError(
        'RECEIPT_NOT_FOUND',
        'A hosted loop needs receipts, and this store makes none. Use a durable store.',
      );
    await this.assertOwnSecrets(document);
    const plan = isEventDriven(document) ? undefined : firstDue(document.schedule, at);
    const stream = await this.streams.get(document.id);
    // Registered before, so that two loops with one grant id do not both start.
    // guard: conflicting-grant-starts-nothing
    if (stream.state.now.started === undefined) await this.deps.usedOf(started.grant);
    await this.streams.decide(stream, (state) =>
      // guard: hosted-loop-started-once
      state.now.started !== undefined
        ? undefined
        : [
            { type: HOSTED_STARTED, key: document.id, value: started as unknown as Json },
            { type: HOSTED_PLANNED, key: 'plan', value: (plan ?? null) as unknown as Json },
          ],
    );
    const { started: known, stopped } = stream.state.now;
    // guard: hosted-loop-has-one-content
    if (known?.digest !== digest)
      throw conflict(document.id, 'was started with other content; give the changed one another id');
    // guard: stopped-loop-does-not-start-again
    if (stopped !== undefined)
      throw conflict(document.id, `has stopped (${stopped.reason}); start it under another id`);
    this.register(loop);
    return this.statusOf(stream);
  }

  /** Registers the code of a hosted loop that was started by another process, or before a restart. */
  register(loop: HostedLoop | HostedLoopDocument): void {
    if (!('document' in loop)) return;
    if (loop.loop !== undefined) this.deps.options.registry.add(loop.loop);
    if (loop.next !== undefined) this.code.set(loop.document.id, loop.next);
  }

  /** Returns the status of a hosted loop. Throws HOSTED_LOOP_NOT_FOUND. */
  async status(loop: string): Promise<HostedLoopStatus> {
    return this.statusOf(await this.streamOf(loop));
  }

  /** Returns the status of all hosted loops of the store, sorted by id. One that cannot be read has the reason `damaged`. */
  async list(): Promise<readonly HostedLoopStatus[]> {
    const all: HostedLoopStatus[] = [];
    for (const loop of [...(await this.streams.list())].sort())
      try {
        const stream = await this.streams.find(loop);
        if (stream !== undefined) all.push(await this.statusOf(stream));
      } catch (thrown) {
        // A damaged loop must not hide the others. It is an error only if it is requested by name.
        if (!isStoreDamage(thrown)) throw thrown;
        all.push(damagedLoopStatus(loop, thrown));
      }
    return all;
  }

  /** Returns the turns of a hosted loop, oldest first. Throws HOSTED_LOOP_NOT_FOUND. */
  async turns(loop: string): Promise<readonly HostedTurnListing[]> {
    const stream = await this.streamOf(loop);
    const entries: HostedEntry[] = [];
    for await (const batch of this.deps.options.store.journal.read(hostedStreamOf(loop), 0))
      entries.push(...(batch as readonly HostedEntry[]));
    return hostedTurnsOf(entries, (turn) => hostedTurnId(documentOf(stream.state), turn));
  }

  /** Returns the document of a hosted loop; undefined if it was not started. */
  async definition(loop: string): Promise<HostedLoopDocument | undefined> {
    return (await this.streams.find(loop))?.state.now.started?.document;
  }

  /** Pauses a hosted loop: no turn starts or continues until it is resumed. A turn that runs goes on until it pauses. */
  async pause(loop: string, control: HostedControl): Promise<HostedLoopStatus> {
    const stream = await this.streamOf(loop);
    const value = this.recordOf(control);
    await this.streams.decide(stream, ({ now: { paused, stopped } }) =>
      paused === undefined && stopped === undefined ? [{ type: HOSTED_PAUSED, key: 'pause', value }] : undefined,
    );
    this.assertNotStopped(stream);
    return this.statusOf(stream);
  }

  /** Resumes a paused hosted loop. What was due meanwhile follows its document. */
  async resume(loop: string, control: HostedControl): Promise<HostedLoopStatus> {
    const stream = await this.streamOf(loop);
    const value = this.recordOf(control);
    await this.streams.decide(stream, ({ now: { paused, open } }) =>
      paused === undefined
        ? undefined
        : [
            { type: HOSTED_RESUMED, key: 'pause', value },
            // Whether the open turn can go on is found out by continuing it.
            ...(open?.waitsFor === undefined ? [] : [{ type: HOSTED_CONTINUED, key: 'pause', value: {} }]),
          ],
    );
    this.assertNotStopped(stream);
    return this.statusOf(stream);
  }

  /** Stops a hosted loop for good, and cancels its open turn. */
  async stop(loop: string, { by, reason = '' }: HostedControl): Promise<HostedLoopStatus> {
    const stream = await this.streamOf(loop);
    const message = actionOf('Stopped', { by, reason });
    const value = { reason: 'stopped_by', message, by, at: this.deps.options.clock.now() };
    await this.streams.decide(stream, ({ now: { stopped } }) =>
      stopped === undefined ? [{ type: HOSTED_STOPPED, key: 'stop', value }] : undefined,
    );
    const { open } = stream.state.now;
    if (open === undefined) return this.statusOf(stream);
    await this.driveIfFree(loop, {});
    // Another task or process runs the turn. It records the end.
    const turnId = hostedTurnId(documentOf(stream.state), open.request.turn);
    if (stream.state.now.open !== undefined && (await this.deps.archive.has(turnId)))
      await this.deps.cancelTurn(turnId, message);
    return this.status(loop);
  }

  /** Accepts a signal; see `HostedInbox.accept`. Throws HOSTED_LOOP_NOT_FOUND. */
  async signal(delivery: HostedSignalDelivery, method: SignalMethod = 'operator'): Promise<SignalReceipt> {
    return this.inbox.accept(await this.streamOf(delivery.loop), delivery, method);
  }

  /** Accepts a handoff; see `HostedInbox.acceptHandoff`. */
  async handoff(handoff: OutgoingHandoff): Promise<SignalReceipt> {
    return this.inbox.acceptHandoff(handoff);
  }

  /**
   * Does what is due of a loop, if its lease is free, and returns the result of the turn that was run. Calls `listener` if
   * that stopped or paused the loop.
   */
  driveIfFree(loop: string, options: TurnOptions, listener?: HostedLoopListener): Promise<TurnResult | undefined> {
    const perform = (): Promise<TurnResult | undefined> => this.drive(loop, options, listener);
    return this.deps.sessionQueues.tryRun(hostedStreamOf(loop), loop, perform);
  }

  /**
   * Continues a turn of a hosted loop, as its open turn and nothing else, and returns its result. Throws TURN_NOT_FOUND,
   * and HOSTED_LOOP_CONFLICT if the loop is paused or has stopped, so that the turn cannot go on.
   */
  async resumeTurn(turnId: string, options: TurnOptions): Promise<TurnResult> {
    const loop = hostedLoopOf(sessionIdOf(turnId)) ?? '';
    if (options.grant !== undefined)
      throw conflict(loop, 'has one grant for all of its turns; no turn gets another one');
    const stream = await this.streamOf(loop);
    const sessionId = hostedStreamOf(loop);
    const perform = async (): Promise<TurnResult | undefined> => {
      await stream.refresh();
      const { open } = stream.state.now;
      const isOpen = open !== undefined && hostedTurnId(documentOf(stream.state), open.request.turn) === turnId;
      // guard: only-the-open-turn-continues
      return isOpen ? this.drive(loop, options) : undefined;
    };
    const whileHeldElsewhere = (): Promise<void> => this.deps.whenReleased(sessionId);
    const run = await this.deps.sessionQueues.run({ sessionId, turnId: loop, perform, whileHeldElsewhere });
    const result = run?.turnId === turnId ? run : await this.deps.archive.restingResult(turnId);
    if (result !== undefined) return result;
    throw conflict(loop, stream.state.now.stopped === undefined ? 'is paused; resume it first' : 'has stopped');
  }

  /** Cancels a turn of a hosted loop. The loop counts it as failed. */
  async cancelTurn(turnId: string, cancel: () => Promise<boolean>): Promise<boolean> {
    const loop = hostedLoopOf(sessionIdOf(turnId)) ?? '';
    const stream = await this.streamOf(loop);
    // Recorded before: a process that ends between the cancel and the record of the end leaves the loop due.
    await this.streams.decide(stream, ({ now: { open, stopped } }) =>
      open?.waitsFor === undefined || stopped !== undefined
        ? undefined
        : [{ type: HOSTED_CONTINUED, key: 'cancel', value: {} }],
    );
    const isCancelled = await cancel();
    await this.driveIfFree(loop, {});
    return isCancelled;
  }

  private recordOf({ by, reason = '' }: HostedControl): { readonly [member: string]: Json } {
    return { at: this.deps.options.clock.now(), by, ...(reason !== '' && { reason }) };
  }

  private async drive(
    loop: string,
    options: TurnOptions,
    listener?: HostedLoopListener,
  ): Promise<TurnResult | undefined> {
    const stream = await this.streamOf(loop);
    const before = stream.state.now;
    const [wasStopped, wasPaused] = [before.stopped !== undefined, before.paused !== undefined];
    try {
      return await this.driver.drive(stream, options);
    } finally {
      const { stopped, paused } = stream.state.now;
      if (stopped !== undefined && !wasStopped)
        listener?.onStop({ loop, reason: stopped.reason, message: stopped.message });
      if (paused?.cause !== undefined && !wasPaused)
        listener?.onPause({ loop, reason: paused.cause, message: paused.reason ?? '' });
    }
  }

  private async streamOf(loop: string): Promise<HostedStream> {
    const stream = await this.streams.find(loop);
    if (stream !== undefined) return stream;
    const names = namesHint(loop, [...(await this.streams.list())].sort(), 'It has');
    throw new LoopError('HOSTED_LOOP_NOT_FOUND', `No hosted loop "${loop}" was started in this store.${names}`, {
      loop,
    });
  }

  private async statusOf(stream: HostedStream): Promise<HostedLoopStatus> {
    const { started, last, open } = stream.state.now;
    const loop = started?.document.id ?? '';
    const verified = last === undefined ? undefined : await verifyPredecessor(this.deps.predecessor, loop, last);
    const isValid = verified === undefined || verified.stop === undefined;
    const isHeld = open !== undefined && (await this.isHeld(hostedStreamOf(loop)));
    return statusOf(stream.state, { isValid, isHeld });
  }

  /** True if a process does something with a loop now. */
  private async isHeld(session: string): Promise<boolean> {
    if (this.deps.sessionQueues.isBusy(session)) return true;
    const leases = await this.deps.options.store.leases.list();
    return leases.some((lease) => lease.session === session);
  }

  /** A delivery for one signal would be authentic for another one with the same secret. */
  private async assertOwnSecrets(document: HostedLoopDocument): Promise<void> {
    const hasSecret = Object.values(document.signals ?? {}).some(({ verify }) => verify !== undefined);
    if (!hasSecret) return;
    const others: HostedLoopDocument[] = [];
    for (const loop of await this.streams.list()) {
      const { started, stopped } = (await this.streams.find(loop))?.state.now ?? {};
      if (started !== undefined && stopped === undefined && loop !== document.id) others.push(started.document);
    }
    const shared = sharedSecretOf([...others, document]);
    // guard: secret-belongs-to-one-signal
    if (shared === undefined) return;
    const message = `The secret ${shared.reference} is shared by the signals ${shared.signals.join(' and ')}. Give each its own.`;
    throw new LoopError('DEFINITION_INVALID', message, { path: '/signals' });
  }

  private assertNotStopped(stream: HostedStream): void {
    const { stopped } = stream.state.now;
    if (stopped !== undefined) throw conflict(documentOf(stream.state).id, `has stopped (${stopped.reason})`);
  }

  /** Checks a hosted loop against this host, and returns what is recorded of its start. */
  private startedLoop(
    loop: HostedLoop | HostedLoopDocument,
    { by, untrustedDirectory, directory }: HostedStart,
  ): StartedLoop {
    const hasCode = 'document' in loop && loop.next !== undefined;
    const document = parseHostedLoop('document' in loop ? loop.document : loop);
    const { registry, clock } = this.deps.options;
    if ('document' in loop && loop.loop !== undefined) registry.add(loop.loop);
    const registered = registry.find(document.loop);
    if (registered === undefined) throw unknownLoopError(registry, document.loop);
    const untrusted = trustFlawOf(document, this.deps.options, untrustedDirectory);
    const [flaw = untrusted] = loopFlawsOf(document, registered, hasCode, this.deps.options);
    if (flaw !== undefined) throw new LoopError('DEFINITION_INVALID', `${flaw.path}: ${flaw.reason}.`, { ...flaw });
    const grant = effectiveGrant(document);
    parseGrant(grant, { isOperators: true });
    const started = { document, digest: hostedLoopDigest(document), grant, at: clock.now(), by, hasCode };
    if (untrustedDirectory !== undefined) return { ...started, untrustedDirectory };
    return directory === undefined ? started : { ...started, directory };
  }
}

/** Returns the error for a loop that is not registered, with the ids that are. */
function unknownLoopError(registry: Registry, id: string): LoopError {
  const error = loopNotFoundError(registry, id);
  if (error.code !== 'LOOP_NOT_FOUND') return error;
  const ids = [...new Set(registry.list().map(({ definition }) => definition.id))];
  return new LoopError(error.code, `${error.message}${namesHint(id, ids, 'Known are')}`, error.data);
}

function conflict(loop: string, problem: string): LoopError {
  return new LoopError('HOSTED_LOOP_CONFLICT', `The hosted loop "${loop}" ${problem}.`, { loop });
}
