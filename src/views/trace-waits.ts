/**
 * The waits and timers of a turn that are open, for the events of their ends: a body in code slept or received a
 * signal, or a call received the answer to its approval. Waits and timers of layers, such as the delay before a retry,
 * have no events; only approvals do.
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
}

type WaitEventType = 'rondo.timer.fired' | 'rondo.signal.received' | 'rondo.approval.answered';

/** The event of a wait that ended. */
type WaitEvent = { [T in WaitEventType]: { readonly type: T; readonly payload: VendorPayloads[T] } }[WaitEventType];

/** Tracks the open waits and timers. Each entry takes time that is bounded by the depth of its key. */
export class TracedWaits {
  private readonly openWaits = new Map<string, OpenWait>();
  /** The keys of the open effects with layers. */
  private readonly layeredEffects = new Set<string>();

  /** Applies an entry. Returns the event of a wait or timer that it ends; undefined if there is none. */
  apply(entry: Entry, at: number, callId: string, isCode: boolean): WaitEvent | undefined {
    const { type, key, name } = entry;
    if (type === 'effect.opened') this.layeredEffects.add(key);
    else if (type === 'effect.settled') this.layeredEffects.delete(key);
    else if (type === 'wait.opened' || type === 'timer.set') this.open(key, name, at, callId, isCode);
    else if (type === 'wait.settled' || type === 'timer.fired') return this.close(entry, at);
    return undefined;
  }

  private open(key: string, name: string | undefined, openedAt: number, callId: string, isCode: boolean): void {
    const isTraced = this.isInLayer(key, callId) ? name?.startsWith(APPROVAL_SIGNAL_PREFIX) === true : isCode;
    if (isTraced) this.openWaits.set(key, { name, openedAt });
  }

  private close({ key, value }: Entry, at: number): WaitEvent | undefined {
    const wait = this.openWaits.get(key);
    if (wait === undefined) return undefined;
    this.openWaits.delete(key);
    const { name } = wait;
    const durationMs = at - wait.openedAt;
    if (name === undefined) return { type: 'rondo.timer.fired', payload: { durationMs } };
    if (name.startsWith(APPROVAL_SIGNAL_PREFIX))
      return { type: 'rondo.approval.answered', payload: answerPayload(name, value, at) };
    const payload = value === undefined ? { name, durationMs } : { name, durationMs, payload: value };
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
