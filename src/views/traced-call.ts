/** The open calls and effects of a trace. */
import type { Entry } from '../protocol/entry.js';

/** A call that has started. */
export class TracedCall {
  readonly id: string;
  readonly startedEntry: Entry;
  readonly startedAt: number;
  readonly parent: TracedCall | undefined;
  /** The number of children that have started, and of those that have not ended. */
  childCount = 0;
  openChildren = 0;
  /** True if the call is in `TraceBuilder.indexedCalls`. */
  isIndexed = false;
  /** The effect of a leaf call, until its end is recorded. */
  leafEffect: TracedEffect | undefined;
  /** True if the LSEM event of its request, of its response and of its end was emitted. */
  hasRequest = false;
  hasResponse = false;
  hasEnded = false;

  constructor(startedEntry: Entry, startedAt: number, parent: TracedCall | undefined) {
    this.id = startedEntry.key;
    this.startedEntry = startedEntry;
    this.startedAt = startedAt;
    this.parent = parent;
  }
}

/** The events that an effect emits: those of an LSEM backend or tool, of a code body, or none (`gate`). */
type TracedAs = 'backend' | 'tool' | 'body' | 'gate';

/** An effect in progress. */
export class TracedEffect {
  readonly requestedAt: number;
  readonly kind: string;
  readonly name: string;
  readonly tracedAs: TracedAs;
  readonly call: TracedCall;

  constructor(requestedAt: number, kind: string, name: string, tracedAs: TracedAs, call: TracedCall) {
    this.requestedAt = requestedAt;
    this.kind = kind;
    this.name = name;
    this.tracedAs = tracedAs;
    this.call = call;
  }
}

/**
 * Returns how an effect is traced. LSEM defines the model request of a prompt and the one effect of a tool; model
 * requests of agents are traced like those of prompts. Calls that earlier versions recorded have no `bodyKind`: their
 * effect counts as the effect of a tool if it has the name of the loop.
 */
export function tracedAsOf({ startedEntry }: TracedCall, kind: string, name: string): TracedAs {
  if (kind === 'gate') return 'gate';
  if (kind === 'model')
    return /* guard: code-effect-is-no-backend */ startedEntry.bodyKind === 'code' ? 'body' : 'backend';
  return kind === 'tool' &&
    /* guard: code-effect-is-no-tool */ startedEntry.bodyKind === undefined &&
    name === startedEntry.name
    ? 'tool'
    : 'body';
}
