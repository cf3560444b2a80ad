/**
 * The waits and timers of a turn that are open, for the events of their starts and ends: a body in code sleeps or waits
 * for a signal, or a call received the answer to its approval. Waits and timers of layers, such as the delay before a
 * retry, have no events; only the answers to approvals do.
 */
import { ownProperty, ownText } from '../base/own-property.js';
import type { Entry } from '../protocol/entry.js';
import type { VendorPayloads } from '../protocol/trace.js';
import { parentKeyOf } from './conversation/open-calls.js';
import { isoTime } from './iso-time.js';
import { APPROVAL_SIGNAL_PREFIX } from './turns.js';

/** A wait or timer that has not ended. A timer has no name. */
interface OpenWait {
  readonly name: string | undefined;
  readonly openedAt: number;
  readonly callId: string;
}

type WaitEventType = 'rondo.wait.opened' | 'rondo.timer.fired' | 'rondo.signal.received' | 'rondo.approval.answered';

/** The event of a wait that began or ended. */
type WaitEvent = { [T in WaitEventType]: { readonly type: T; readonly payload: VendorPayloads[T] } }[WaitEventType];

/** Tracks the open waits and timers. Each entry takes time that is bounded by the depth of its key. */
export class TracedWaits {
  private readonly openWaits = new Map<string, OpenWait>();
  /** The keys of the open effects with layers. */
  private readonly layeredEffects = new Set<string>();

  /** Applies an entry. Returns the event of a wait or timer that it opens or ends; undefined if there is none. */
  apply(entry: Entry, at: number, callId: string, isCode: boolean): WaitEvent | undefined {
    const { type, key } = entry;
    if (type === 'effect.opened') this.layeredEffects.add(key);
    else if (type === 'effect.settled') this.layeredEffects.delete(key);
    else if (type === 'wait.opened' || type === 'timer.set') return this.open(entry, at, callId, isCode);
    else if (type === 'wait.settled' || type === 'timer.fired') return this.close(entry, at);
    return undefined;
  }

  /** Ends the selected waits. Returns the keys of those that belong to this call and whose start had an event. */
  cancel(callId: string, isCancelled: (key: string) => boolean): readonly string[] {
    const cancelled = [...this.openWaits].filter(([key]) => isCancelled(key));
    for (const [key] of cancelled) this.openWaits.delete(key);
    return cancelled
      .filter(([, wait]) => wait.callId === callId && wait.name?.startsWith(APPROVAL_SIGNAL_PREFIX) !== true)
      .map(([key]) => key);
  }

  private open(
    { key, name, until = 0 }: Entry,
    openedAt: number,
    callId: string,
    isCode: boolean,
  ): WaitEvent | undefined {
    const isApproval = name?.startsWith(APPROVAL_SIGNAL_PREFIX) === true;
    const isTraced = this.isInLayer(key, callId) ? isApproval : isCode;
    if (!isTraced) return undefined;
    this.openWaits.set(key, { name, openedAt, callId });
    if (isApproval) return undefined;
    const payload = name === undefined ? { key, until: isoTime(until) } : { key, signal: name };
    return { type: 'rondo.wait.opened', payload };
  }

  private close({ key, value }: Entry, at: number): WaitEvent | undefined {
    const wait = this.openWaits.get(key);
    if (wait === undefined) return undefined;
    this.openWaits.delete(key);
    const { name } = wait;
    const durationMs = at - wait.openedAt;
    if (name === undefined) return { type: 'rondo.timer.fired', payload: { key, durationMs } };
    if (name.startsWith(APPROVAL_SIGNAL_PREFIX))
      return { type: 'rondo.approval.answered', payload: answerPayload(name, value, at) };
    const payload = value === undefined ? { key, name, durationMs } : { key, name, durationMs, payload: value };
    return { type: 'rondo.signal.received', payload };
  }

  /** True if the key lies below an open effect with layers of this call. */
  private isInLayer(key: string, callId: string): boolean {
    if (this.layeredEffects.size === 0) return false;
    for (let above = parentKeyOf(key); above.length > callId.length; above = parentKeyOf(above))
      if (this.layeredEffects.has(above)) return true;
    return false;
  }
}

function answerPayload(name: string, value: Entry['value'], at: number): VendorPayloads['rondo.approval.answered'] {
  const [reason, answeredAt] = [ownProperty(value, 'reason'), ownProperty(value, 'at')];
  return {
    id: name.slice(APPROVAL_SIGNAL_PREFIX.length),
    approved: ownProperty(value, 'approved') === true,
    by: ownText(value, 'by'),
    ...(typeof reason === 'string' && { reason }),
    at: isoTime(typeof answeredAt === 'number' ? answeredAt : at),
  };
}
