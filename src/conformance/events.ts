/**
 * The events of LSEM, the Loop Stack Execution Model: its event table and its lifecycle diagram as predicates on events
 * and calls, and functions to copy, group and date events.
 */
import { isObject, ownProperty } from '../base/own-property.js';
import type { CoreEventType, TraceEvent } from '../protocol/trace.js';
import { describeValue, isNonEmptyString, isNonNegativeNumber } from './assertions.js';
import { jsonCopy } from './json.js';

type ValuePredicate = (value: unknown) => boolean;

const isIndex: ValuePredicate = (value) => isNonNegativeNumber(value) && Number.isInteger(value);
const optional =
  (predicate: ValuePredicate): ValuePredicate =>
  (value) =>
    value === undefined || value === null || predicate(value);
/** LSEM does not specify the type of a code; non-empty strings and integers are accepted. */
const isCode: ValuePredicate = (value) => isNonEmptyString(value) || Number.isInteger(value);
const isString: ValuePredicate = (value) => typeof value === 'string';

/** The members of each payload, with a predicate for the value. An `optional` member may be absent or null. */
const PAYLOAD_MEMBERS: { readonly [T in CoreEventType]: { readonly [member: string]: ValuePredicate } } = {
  'call.started': { loopId: isNonEmptyString, loopVersion: isNonEmptyString, parentCallId: optional(isNonEmptyString) },
  'call.input.validated': { durationMs: isNonNegativeNumber },
  'call.backend.requested': { backendId: isNonEmptyString, model: isNonEmptyString, promptLength: isIndex },
  'call.backend.responded': {
    durationMs: isNonNegativeNumber,
    inputTokens: isNonNegativeNumber,
    outputTokens: isNonNegativeNumber,
  },
  'call.tool.invoked': { toolName: isNonEmptyString },
  'call.tool.returned': { durationMs: isNonNegativeNumber },
  'child.started': { childCallId: isNonEmptyString, loopId: isNonEmptyString, stepIndex: isIndex },
  'child.completed': { childCallId: isNonEmptyString, status: isNonEmptyString },
  'call.output.validated': { durationMs: isNonNegativeNumber },
  'call.completed': { totalDurationMs: isNonNegativeNumber },
  'call.errored': { code: isCode, message: isString },
  log: { level: isNonEmptyString, message: isString },
};

/** The event types that LSEM defines. */
export const coreTypes = Object.keys(PAYLOAD_MEMBERS) as readonly CoreEventType[];

/** Returns true for an event type that LSEM defines. */
export function isCoreType(type: unknown): type is CoreEventType {
  return typeof type === 'string' && Object.hasOwn(PAYLOAD_MEMBERS, type);
}

/**
 * Describes the first missing or invalid member of a payload; undefined for a valid payload or a vendor's event type.
 */
export function findPayloadProblem(event: TraceEvent): string | undefined {
  if (!isCoreType(event.type)) return undefined;
  for (const [member, isValid] of Object.entries(PAYLOAD_MEMBERS[event.type])) {
    const value = ownProperty(event.payload, member);
    if (!isValid(value))
      return `${event.type} has ${describeValue(value)} for ${member}, in ${describeValue(event.payload)}`;
  }
  return undefined;
}

/**
 * Returns a copy of an event as JSON, so that later changes of the object have no effect. For a value that is not an
 * object or not JSON, returns an event that fails the checks and describes the value in its type.
 */
export function toTraceEvent(value: unknown): TraceEvent {
  try {
    // guard: deep-events-copied
    const event = jsonCopy(value);
    if (isObject(event)) return event as unknown as TraceEvent;
  } catch {
    // The value is not JSON: the event below describes it.
  }
  return { type: `not an event: ${describeValue(value)}` } as TraceEvent;
}

/** Returns the events by call id. */
export function eventsByCall(events: readonly TraceEvent[]): ReadonlyMap<string, readonly TraceEvent[]> {
  const calls = new Map<string, TraceEvent[]>();
  for (const event of events) {
    const call = calls.get(event.callId);
    if (call === undefined) calls.set(event.callId, [event]);
    else call.push(event);
  }
  return calls;
}

/** Returns true for an event that ends a call. */
export function isTerminal(event: TraceEvent): boolean {
  return event.type === 'call.completed' || event.type === 'call.errored';
}

/** Returns the event types of the lifecycle: the core types except `log`, which may occur anywhere. */
export function lifecycleOf(events: readonly TraceEvent[]): readonly string[] {
  return events.map((event) => event.type).filter((type) => isCoreType(type) && type !== 'log');
}

/** The letter of each event type in the patterns below. `log` may occur anywhere, so it has none. */
const EVENT_LETTERS: { readonly [T in CoreEventType]: string } = {
  'call.started': 's',
  'call.input.validated': 'i',
  'call.backend.requested': 'b',
  'call.backend.responded': 'B',
  'call.tool.invoked': 't',
  'call.tool.returned': 'T',
  'child.started': 'c',
  'child.completed': 'C',
  'call.output.validated': 'o',
  'call.completed': 'x',
  'call.errored': 'e',
  log: '',
};
const LIFECYCLE_PATTERN = /^s(?:e|i(?:(?:bB|tT|(?:cC)*)(?:ox|e)|[bt]e))$/;
const PARALLEL_CHILDREN_PATTERN = /^si([cC]*)(?:ox|e)$/;

function lettersOf(events: readonly TraceEvent[]): string {
  return events.map(({ type }) => (isCoreType(type) ? EVENT_LETTERS[type] : '')).join('');
}

/** Returns true if the complete events of a call are a path through the lifecycle diagram. */
export function followsLifecycle(events: readonly TraceEvent[]): boolean {
  return LIFECYCLE_PATTERN.test(lettersOf(events));
}

/** Returns true if a call with concurrent children closes as many frames as it opens. Frames are not matched by id. */
export function closesChildFrames(events: readonly TraceEvent[]): boolean {
  const [, frames] = PARALLEL_CHILDREN_PATTERN.exec(lettersOf(events)) ?? [];
  if (frames === undefined) return false;
  let openCount = 0;
  for (const letter of frames) {
    openCount += letter === 'c' ? 1 : -1;
    if (openCount < 0) return false;
  }
  return openCount === 0;
}

const DATE_PATTERN = String.raw`(\d{4})-?(\d\d)-?(\d\d)`;
const TIME_PATTERN = String.raw`(\d\d):?(\d\d)(?::?(\d\d)(?:[.,](\d{1,12}))?)?`;
const ISO_8601_PATTERN = new RegExp(String.raw`^${DATE_PATTERN}T${TIME_PATTERN}(?:Z|([+-])(\d\d):?(\d\d)?)?$`);

/** Parses an ISO 8601 timestamp to milliseconds since the epoch, in UTC if it has no zone; undefined for other text. */
export function timestampMs(ts: string): number | undefined {
  const parts = ISO_8601_PATTERN.exec(ts);
  if (parts === null) return undefined;
  const [year = 0, month = 0, day = 0, hour = 0, minute = 0, second = 0] = parts
    .slice(1, 7)
    .map((text) => Number(text ?? 0));
  const midnight = new Date(Date.UTC(year, month - 1, day));
  if (midnight.getUTCMonth() !== month - 1 || midnight.getUTCDate() !== day) return undefined;
  if (hour > 24 || minute > 59 || second > 60) return undefined;
  const offset = (Number(parts[9] ?? 0) * 60 + Number(parts[10] ?? 0)) * (parts[8] === '-' ? -1 : 1);
  const fraction = Number(`0.${parts[7] ?? 0}`);
  return midnight.getTime() + ((hour * 60 + minute - offset) * 60 + second + fraction) * 1000;
}
