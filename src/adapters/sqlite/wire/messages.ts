/**
 * The messages on the socket, validated on receipt. Another process may run another build or be broken: its messages
 * must neither reach a commit that other processes share, nor crash the process that receives them.
 */
import { isObject } from '../../../base/own-property.js';
import type { RecordDraft } from '../../../journal/record.js';
import type { Json } from '../../../protocol/json.js';
import type { ProcessId } from '../owner/process.js';
import type { WireError } from './wire-errors.js';

/** A request of a client. */
export interface ClientRequest {
  /** The number of the request, repeated in its response; absent if no response is needed. */
  readonly i?: number;
  readonly op: string;
}

/** A client's answer to a forwarded request. */
interface ClientAnswer {
  /** The number of the forwarded request. */
  readonly a: number;
}

/** A message of the owner: a response or its progress (messages with `i`), or a forwarded request (with `a`). */
export interface OwnerMessage {
  /** The number of the client's request. */
  readonly i?: number;
  /** The result of the request. */
  readonly ok?: unknown;
  readonly error?: WireError;
  /** A streamed piece of another process's reply. */
  readonly piece?: Json;
  /** True if the piece may be left out for a slow reader. */
  readonly droppable?: boolean;
  /** The process to which the request was forwarded. */
  readonly asked?: ProcessId;
  /** True if that process has the request. */
  readonly ack?: boolean;
  /** The number of a request that is forwarded to this client. */
  readonly a?: number;
  readonly session?: string;
  readonly request?: Json;
}

type ValueCheck = (value: unknown) => boolean;
type MessageShape = Readonly<Record<string, ValueCheck>>;

const MAX_NAME_CHARS = 1000;
/**
 * Maximum depth of a JSON value: deeper than any value that the runtime accepts, and shallow enough to be serialized
 * again.
 */
const MAX_DEPTH = 500;

const isNonNegativeInteger: ValueCheck = (value) => Number.isSafeInteger(value) && (value as number) >= 0;
const isString: ValueCheck = (value) => typeof value === 'string';
const isShortString: ValueCheck = (value) => typeof value === 'string' && value.length <= MAX_NAME_CHARS;
const isJsonWithinDepth: ValueCheck = (value) => isWithinDepth(value, MAX_DEPTH);
const isStringPair: ValueCheck = (value) => Array.isArray(value) && value.length === 2 && value.every(isString);
const isOptionalBlobList: ValueCheck = (value) =>
  value === undefined || (Array.isArray(value) && value.every(isStringPair));
const isWireError: ValueCheck = (value) => matchesShape(value, { family: isShortString, message: isString });
const isProcessId: ValueCheck = (value) => matchesShape(value, { pid: isNonNegativeInteger, start: isShortString });
const isHeldSessionList: ValueCheck = (value) =>
  Array.isArray(value) && value.every((item) => matchesShape(item, { session: isShortString, turn: isShortString }));
const isDueTurn: ValueCheck = (value) =>
  matchesShape(value, { session: isShortString, turn: isShortString, dueAt: isNonNegativeInteger });
const isDueTurnList: ValueCheck = (value) => Array.isArray(value) && value.every(isDueTurn);
const isSnapshot: ValueCheck = (value) =>
  matchesShape(value, { nextSeq: isNonNegativeInteger, tailDigest: isShortString, state: isJsonWithinDepth });

const optional =
  (check: ValueCheck): ValueCheck =>
  (value) =>
    value === undefined || check(value);
/** A time, or the integer before the first one. */
const isTimeBound: ValueCheck = (value) => value === -1 || isNonNegativeInteger(value);
const DUE_CHANGE_SHAPE: MessageShape = { turn: isShortString, dueAt: optional(isNonNegativeInteger) };
const isOptionalDueList: ValueCheck = (value) =>
  value === undefined || (Array.isArray(value) && value.every((item) => matchesShape(item, DUE_CHANGE_SHAPE)));
const isStringList: ValueCheck = (value) => Array.isArray(value) && value.every(isString);
const isSessionPosition: ValueCheck = (value) =>
  matchesShape(value, { blob: optional(isString), bad: isStringList, next: isNonNegativeInteger, prev: isShortString });
const isOptionalCursor: ValueCheck = optional((value) =>
  matchesShape(value, { phase: isShortString, sid: isNonNegativeInteger, at: optional(isSessionPosition) }),
);
const isIdList: ValueCheck = (value) => Array.isArray(value) && value.every(isNonNegativeInteger);
const isAttribution: ValueCheck = (value) => matchesShape(value, { by: isShortString, reason: optional(isString) });

/** The members of each request except appends. Other members are allowed and ignored. */
const REQUEST_SHAPES = new Map<string, MessageShape>(
  Object.entries({
    hello: { id: isShortString, process: isProcessId, held: isHeldSessionList },
    bye: {},
    claim: { session: isShortString },
    read: { session: isShortString, from: isNonNegativeInteger },
    list: {},
    remove: { session: isShortString },
    get: { session: isShortString, digest: isShortString },
    load: { session: isShortString },
    save: { session: isShortString, snapshot: isSnapshot },
    due: { until: isTimeBound, limit: isNonNegativeInteger, after: optional(isDueTurn) },
    'next-due': { after: isTimeBound },
    'is-due-complete': {},
    'rebuild-due': { turns: isDueTurnList },
    acquire: { session: isShortString, turn: isShortString },
    release: { session: isShortString },
    holdings: {},
    ask: { session: isShortString, request: isJsonWithinDepth },
    record: {},
    verify: { cursor: isOptionalCursor },
    accept: { ids: isIdList, word: isAttribution },
    erase: { session: isShortString, word: isAttribution },
  }),
);

function matchesShape(value: unknown, shape: MessageShape): boolean {
  if (!isObject(value)) return false;
  for (const key in shape) if (shape[key]?.(Object.hasOwn(value, key) ? value[key] : undefined) !== true) return false;
  return true;
}

function isWithinDepth(value: unknown, depth: number): boolean {
  if (typeof value !== 'object' || value === null) return value !== undefined;
  if (depth === 0) return false;
  for (const member of Object.values(value)) if (!isWithinDepth(member, depth - 1)) return false;
  return true;
}

/** Validates a message as a request other than an append; undefined if it is not one. */
export function parseRequest(message: unknown): ClientRequest | undefined {
  if (!isObject(message)) return undefined;
  const { i, op } = message;
  const shape = typeof op === 'string' ? REQUEST_SHAPES.get(op) : undefined;
  if (shape === undefined || (i !== undefined && !isNonNegativeInteger(i)) || !matchesShape(message, shape))
    return undefined;
  return message as unknown as ClientRequest;
}

/** An append, with the blobs that are stored together with it. */
export interface AppendRequest extends ClientRequest, RecordDraft {
  readonly i: number;
  /** Pairs of digest and text. */
  readonly blobs?: readonly [string, string][];
}

/**
 * Validates a message as an append, by far the most frequent request; undefined if it is not one. The content of the
 * body is not checked; see `isAppendBody`.
 */
export function parseAppendRequest(message: unknown): AppendRequest | undefined {
  const request = message as AppendRequest | null;
  if (request?.op !== 'append') return undefined;
  const { i, session, fence, firstSeq, count, body, blobs, due } = request;
  const isValid =
    isShortString(session) &&
    isNonNegativeInteger(i) &&
    isNonNegativeInteger(fence) &&
    isNonNegativeInteger(firstSeq) &&
    isNonNegativeInteger(count) &&
    isString(body);
  return isValid && isOptionalBlobList(blobs) && isOptionalDueList(due) ? request : undefined;
}

/** Validates a message as a client's answer; undefined if it is not one. */
export function parseClientAnswer(message: unknown): ClientAnswer | undefined {
  if (!isObject(message) || !isNonNegativeInteger(message.a)) return undefined;
  const { error, ...rest } = message;
  if (error !== undefined && !isWireError(error)) return undefined;
  return isJsonWithinDepth(rest) && (error === undefined || isJsonWithinDepth(error))
    ? (message as unknown as ClientAnswer)
    : undefined;
}

const OWNER_MESSAGE_SHAPE: MessageShape = {
  i: optional(isNonNegativeInteger),
  error: optional(isWireError),
  asked: optional(isProcessId),
  a: optional(isNonNegativeInteger),
  session: optional(isShortString),
};

/**
 * Validates a message of the owner; undefined if it is not one. Results, pieces and forwarded requests are not checked.
 */
export function parseOwnerMessage(message: unknown): OwnerMessage | undefined {
  return matchesShape(message, OWNER_MESSAGE_SHAPE) ? (message as OwnerMessage) : undefined;
}
