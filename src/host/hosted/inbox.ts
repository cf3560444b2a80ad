/**
 * The inbox of a hosted loop: accepts signals that the document declares and handoffs of declared senders, each delivery
 * id once. Whatever is accepted waits in the stream of the loop until a turn is requested for it.
 */
import { LoopError } from '../../base/errors.js';
import { namesHint } from '../../base/nearest-word.js';
import type { Clock } from '../../journal/clock.js';
import { compileSchema, type Validator } from '../../json/schema.js';
import { copyAsJson, lastCopyBytes } from '../../json/value.js';
import { narrowGrant } from '../../policy/narrow-grant.js';
import type { HostedSignalDelivery, SignalReceipt, TurnGrant } from '../../protocol/hosted-loop.js';
import type { Json } from '../../protocol/json.js';
import type { JsonSchema } from '../../protocol/loop.js';
import {
  type DeliveredHandoff,
  deliveryKey,
  HOSTED_HANDED_OFF,
  HOSTED_RECEIVED,
  type HostedLoopState,
  jsonDigest,
  type OutgoingHandoff,
  type ReceivedSignal,
  type StartedLoop,
} from '../../views/hosted-loop.js';
import { documentOf, type HostedStream, type HostedStreams } from './hosted-stream.js';
import { type TrustContext, trustFlawOf } from './loop-flaws.js';
import { type PredecessorDeps, verifyPredecessor } from './predecessor.js';

/** How the sender of a signal was authenticated. */
export type SignalMethod = 'operator' | 'hmac-sha256';

const MAX_PAYLOAD_BYTES = 64 * 1024;
/** How many signals may wait for turns of a loop. */
const MAX_WAITING = 1000;
/** A delivery id is 1 to 200 printable ASCII characters. */
const DELIVERY_ID = /^[!-~]{1,200}$/;
/** How long delivery ids are kept at least, in milliseconds: senders repeat a delivery for days, with a new time. */
const KEEP_MS = 7 * 86_400_000;
/** How many issues of a payload a message lists. */
const MAX_LISTED_ISSUES = 3;

/** The validators of the schemas of signals; a document that was read does not change. */
const validators = new WeakMap<object, Validator>();

interface InboxDeps {
  readonly clock: Clock;
  readonly streams: HostedStreams;
  readonly predecessor: PredecessorDeps;
  readonly options: TrustContext;
}

/** Accepts what is sent to hosted loops. */
export class HostedInbox {
  private readonly deps: InboxDeps;

  constructor(deps: InboxDeps) {
    this.deps = deps;
  }

  /**
   * Accepts a signal. Throws SIGNAL_REFUSED if the loop does not declare it or it is not authentic,
   * INPUT_VALIDATION_FAILED if its payload does not fit, SIGNAL_CONFLICT if the delivery id is known with other content,
   * INBOX_FULL, and HOSTED_LOOP_CONFLICT if the loop has stopped.
   */
  async accept(stream: HostedStream, delivery: HostedSignalDelivery, method: SignalMethod): Promise<SignalReceipt> {
    const { id, name } = delivery;
    const { signals = {}, id: loop } = documentOf(stream.state);
    const signal = Object.hasOwn(signals, name) ? signals[name] : undefined;
    // guard: undeclared-signal-refused
    if (signal === undefined) {
      // Only the operator may know which signals there are.
      const names = method === 'operator' ? namesHint(name, Object.keys(signals), 'It declares') : '';
      throw new LoopError('SIGNAL_REFUSED', `The hosted loop "${loop}" declares no signal "${name}".${names}`);
    }
    // guard: signal-authentic-by-the-declared-method
    if (method !== 'operator' && signal.verify?.method !== method)
      throw new LoopError('SIGNAL_REFUSED', `The signal "${name}" of "${loop}" is accepted from the operator only.`);
    const payload = copyAsJson(delivery.payload ?? null, `the payload of signal "${name}"`) as Json;
    // guard: large-payload-refused
    if (lastCopyBytes() > MAX_PAYLOAD_BYTES)
      throw new LoopError('VALUE_INVALID', `The payload of a signal has at most ${MAX_PAYLOAD_BYTES} bytes.`, { name });
    assertFits(signal.schema, payload, name);
    const at = this.deps.clock.now();
    const digest = jsonDigest({ name, payload });
    // guard: delivery-id-is-plain
    if (!DELIVERY_ID.test(id))
      throw new LoopError('VALUE_INVALID', 'A delivery id is 1 to 200 printable ASCII characters without spaces.');
    return this.receive(stream, { id, name, payload, at, digest, method, keepUntil: at + KEEP_MS });
  }

  /**
   * Accepts a handoff. Throws HANDOFF_REFUSED if the target declares no sender whose last turn has this receipt, if the
   * receipt is not valid, or if the handoff asks for more than its sender may.
   */
  async acceptHandoff(handoff: OutgoingHandoff): Promise<SignalReceipt> {
    const { target, receipt, input, grant, reason, rule } = handoff;
    const stream = await this.deps.streams.find(target);
    if (stream === undefined) throw refusedHandoff(target, 'was never started');
    const senders = documentOf(stream.state).acceptsHandoffsFrom ?? [];
    const from = await this.senderOf(senders, receipt);
    // guard: handoff-from-declared-sender
    if (from === undefined) throw refusedHandoff(target, `accepts no handoff with the receipt ${receipt}`);
    const { started, last } = from.state.now;
    const verified = last && (await verifyPredecessor(this.deps.predecessor, documentOf(from.state).id, last));
    // guard: handoff-has-valid-receipt
    if (verified === undefined || verified.stop !== undefined || last?.status !== 'ok')
      throw refusedHandoff(target, verified?.stop?.message ?? 'got one from a turn that failed');
    const { options } = this.deps;
    const sender = started?.untrustedDirectory ?? (options.trusts && started?.directory);
    const flaw = trustFlawOf(documentOf(stream.state), options, sender);
    // guard: untrusted-sender-hands-off-to-no-trusted-code
    if (flaw !== undefined) throw refusedHandoff(target, `got one from another file: ${flaw.reason}`);
    // guard: handoff-within-its-sender
    if (grant !== undefined) assertNarrows(started, grant);
    // Its turn would be refused, and stop the target.
    // guard: handoff-within-its-target
    if (grant !== undefined) assertNarrows(stream.state.now.started, grant);
    const at = this.deps.clock.now();
    const payload = copyAsJson(input, 'the input of the handoff') as Json;
    const content = {
      from: documentOf(from.state).id,
      receipt,
      input: payload,
      reason,
      ...(grant !== undefined && { grant }),
    };
    const digest = jsonDigest(content as unknown as Json);
    const id = rule === undefined ? `handoff ${receipt}` : `handoff ${receipt} ${rule}`;
    const received = { id, name: '', payload, at, handoff: content, digest, keepUntil: at + KEEP_MS };
    return this.receive(stream, { ...received, method: 'receipt' });
  }

  /** Delivers the handoffs of a loop, the oldest first. One that its target refuses is recorded as refused. */
  async deliverHandoffs(stream: HostedStream): Promise<void> {
    for (let [next] = stream.state.handoffs; next !== undefined; [next] = stream.state.handoffs) {
      const handoff = next;
      const result = await this.acceptHandoff(handoff).catch((thrown: unknown) => {
        if (thrown instanceof LoopError && thrown.code !== 'INBOX_FULL') return `${thrown.code}: ${thrown.message}`;
        throw thrown;
      });
      const { target, receipt, rule } = handoff;
      const key = `handoff ${receipt} ${target}`;
      const value: DeliveredHandoff = { target, receipt, result };
      await this.deps.streams.decide(stream, ({ handoffs: [first] }) =>
        // guard: handoff-recorded-once
        first?.receipt === receipt && first.target === target && first.rule === rule
          ? [{ type: HOSTED_HANDED_OFF, key, value: value as unknown as Json }]
          : undefined,
      );
    }
  }

  private async senderOf(senders: readonly string[], receipt: string): Promise<HostedStream | undefined> {
    for (const sender of senders) {
      const stream = await this.deps.streams.find(sender);
      if (stream?.state.now.last?.receipt === receipt && receipt !== '') return stream;
    }
    return undefined;
  }

  private async receive(stream: HostedStream, received: ReceivedSignal): Promise<SignalReceipt> {
    const key = deliveryKey(received);
    const outcome: { problem: LoopError | undefined; isDuplicate: boolean } = {
      problem: undefined,
      isDuplicate: false,
    };
    await this.deps.streams.decide(stream, (state) => {
      outcome.problem = undefined;
      const known = state.deliveredDigest(key);
      // guard: delivery-accepted-once
      outcome.isDuplicate = known === received.digest;
      if (outcome.isDuplicate) return undefined;
      outcome.problem = problemOf(state, received.id, known);
      if (outcome.problem !== undefined) return undefined;
      return [{ type: HOSTED_RECEIVED, key, value: received as unknown as Json }];
    });
    if (outcome.problem !== undefined) throw outcome.problem;
    return outcome.isDuplicate ? 'duplicate' : 'accepted';
  }
}

/** Returns why a new delivery is not accepted; undefined if it is. */
function problemOf(state: HostedLoopState, id: string, known: string | undefined): LoopError | undefined {
  const { id: loop } = documentOf(state);
  // guard: known-delivery-keeps-its-content
  if (known !== undefined)
    return new LoopError('SIGNAL_CONFLICT', `The delivery "${id}" was received with other content.`, { id });
  // guard: stopped-loop-accepts-nothing
  if (state.now.stopped !== undefined)
    return new LoopError('HOSTED_LOOP_CONFLICT', `The hosted loop "${loop}" has stopped: ${state.now.stopped.reason}.`);
  // guard: inbox-is-bounded
  if (state.signals.length >= MAX_WAITING)
    return new LoopError('INBOX_FULL', `${MAX_WAITING} signals wait for turns of the hosted loop "${loop}".`);
  return undefined;
}

function assertFits(schema: JsonSchema, payload: Json, name: string): void {
  const known = typeof schema === 'object' ? validators.get(schema) : undefined;
  const validator = known ?? compileSchema(schema, `the schema of signal "${name}"`);
  if (typeof schema === 'object') validators.set(schema, validator);
  // guard: payload-fits-its-schema
  if (validator.isValid(payload)) return;
  const issues = validator.issues(payload);
  const listed = issues.slice(0, MAX_LISTED_ISSUES).map(({ path, message }) => `${path || '/'} ${message}`);
  const text = `The payload of signal "${name}" does not fit its schema: ${listed.join('; ')}.`;
  throw new LoopError('INPUT_VALIDATION_FAILED', text, { issues: issues as unknown as Json });
}

/** Throws GRANT_WIDENED if a grant is wider than that of a turn of a loop. */
function assertNarrows(started: StartedLoop | undefined, grant: TurnGrant): void {
  if (started === undefined) return;
  const { turn } = started.document;
  narrowGrant(started.grant, turn?.grant === undefined ? [grant] : [turn.grant, grant]);
}

function refusedHandoff(target: string, problem: string): LoopError {
  return new LoopError('HANDOFF_REFUSED', `The handoff is refused: the hosted loop "${target}" ${problem}.`, {
    target,
  });
}
