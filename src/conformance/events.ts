/** LSEM's table of events and its lifecycle diagram, as things that an event or a call can be held against. */
import { isObject, ownProperty } from '../base/own-property.js';
import type { CoreEventType, TraceEvent } from '../protocol/trace.js';
import { describeValue, isNonEmptyString, isNonNegativeNumber } from './assertions.js';
import { jsonCopy } from './json.js';

type ValuePredicate = (value: unknown) => boolean;

const isIndex: ValuePredicate = (value) => isNonNegativeNumber(value) && Number.isInteger(value);
const optional =
  (fits: ValuePredicate): ValuePredicate =>
  (value) =>
    value === undefined || value === null || fits(value);
/** LSEM does not say what a code is: a word, or a number. */
const isCode: ValuePredicate = (value) => isNonEmptyString(value) || Number.isInteger(value);
const isString: ValuePredicate = (value) => typeof value === 'string';

/** The members of each payload; a member that may be absent says so. */
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

export const coreTypes = Object.keys(PAYLOAD_MEMBERS) as readonly CoreEventType[];

export function isCoreType(type: unknown): type is CoreEventType {
  return typeof type === 'string' && Object.hasOwn(PAYLOAD_MEMBERS, type);
}

/** Which member of the payload is missing or of the wrong kind; undefined when all is well, or the type is a vendor's. */
export function findPayloadProblem(event: TraceEvent): string | undefined {
  if (!isCoreType(event.type)) return undefined;
  for (const [member, fits] of Object.entries(PAYLOAD_MEMBERS[event.type])) {
    const value = ownProperty(event.payload, member);
    if (!fits(value))
      return `${event.type} has ${describeValue(value)} for ${member}, in ${describeValue(event.payload)}`;
  }
  return undefined;
}

/** An event as JSON carries it: what a later change or a lossy writing cannot alter any more. */
export function toTraceEvent(given: unknown): TraceEvent {
  try {
    // guard: deep-events-copied
    const event = jsonCopy(given);
    if (isObject(event)) return event as unknown as TraceEvent;
  } catch {
    // Falls through to an event that no check takes for a good one.
  }
  return { type: `not an event: ${describeValue(given)}` } as TraceEvent;
}

/** The events of each call, by its id. */
export function eventsByCall(events: readonly TraceEvent[]): ReadonlyMap<string, readonly TraceEvent[]> {
  const calls = new Map<string, TraceEvent[]>();
  for (const event of events) {
    const call = calls.get(event.callId);
    if (call === undefined) calls.set(event.callId, [event]);
    else call.push(event);
  }
  return calls;
}

export function isTerminal(event: TraceEvent): boolean {
  return event.type === 'call.completed' || event.type === 'call.errored';
}

/** The types that the lifecycle is made of: the core ones but `log`, which may stand anywhere in it. */
export function lifecycleOf(events: readonly TraceEvent[]): readonly string[] {
  return events.map((event) => event.type).filter((type) => isCoreType(type) && type !== 'log');
}

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

/** Whether the events of one call, complete, take a way through the diagram of the lifecycle. */
export function followsLifecycle(events: readonly TraceEvent[]): boolean {
  return LIFECYCLE_PATTERN.test(lettersOf(events));
}

/** The same for a call whose children may run side by side: each frame is closed, and all of them before the call ends. */
export function closesChildFrames(events: readonly TraceEvent[]): boolean {
  const [, frames] = PARALLEL_CHILDREN_PATTERN.exec(lettersOf(events)) ?? [];
  if (frames === undefined) return false;
  let open = 0;
  for (const letter of frames) {
    open += letter === 'c' ? 1 : -1;
    if (open < 0) return false;
  }
  return open === 0;
}

const DATE_PATTERN = String.raw`(\d{4})-?(\d\d)-?(\d\d)`;
const TIME_PATTERN = String.raw`(\d\d):?(\d\d)(?::?(\d\d)(?:[.,](\d{1,12}))?)?`;
const ISO_8601_PATTERN = new RegExp(String.raw`^${DATE_PATTERN}T${TIME_PATTERN}(?:Z|([+-])(\d\d):?(\d\d)?)?$`);

/** The instant of an ISO 8601 timestamp, in milliseconds, as UTC if it names no zone; undefined for any other text. */
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
