/**
 * What comes over the socket, checked at the door: another process may be of another build, or broken, and what it sends must neither
 * reach a commit that others share nor end the process that receives it.
 */
import { isObject } from '../../../base/own-property.js';
import type { RecordDraft } from '../../../journal/record.js';
import type { Json } from '../../../protocol/json.js';
import type { ProcessId } from '../owner/process.js';
import type { WireError } from './wire-errors.js';

export interface ClientRequest {
  /** The number under which it is answered; absent for what needs no answer. */
  readonly i?: number;
  readonly op: string;
}

/** An answer of a client to a request that was put to it. */
export interface ClientAnswer {
  readonly a: number;
}

/** What the owner sends: an answer, a piece of one, who was asked, or a request for this process. */
export interface OwnerMessage {
  readonly i?: number;
  readonly ok?: unknown;
  readonly error?: WireError;
  readonly piece?: Json;
  readonly droppable?: boolean;
  readonly asked?: ProcessId;
  readonly ack?: boolean;
  readonly a?: number;
  readonly session?: string;
  readonly request?: Json;
}

type ValueCheck = (value: unknown) => boolean;
type MessageShape = Readonly<Record<string, ValueCheck>>;

const MAX_NAME_CHARS = 1000;
/** Deeper than any value that the runtime accepts, and shallow enough to be written again. */
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
  Array.isArray(value) && value.every((held) => matchesShape(held, { session: isShortString, turn: isShortString }));
const isSnapshot: ValueCheck = (value) =>
  matchesShape(value, { nextSeq: isNonNegativeInteger, tailDigest: isShortString, state: isJsonWithinDepth });

const optional =
  (check: ValueCheck): ValueCheck =>
  (value) =>
    value === undefined || check(value);
const isStringList: ValueCheck = (value) => Array.isArray(value) && value.every(isString);
const isSessionPosition: ValueCheck = (value) =>
  matchesShape(value, { blob: optional(isString), bad: isStringList, next: isNonNegativeInteger, prev: isShortString });
const isOptionalCursor: ValueCheck = optional((value) =>
  matchesShape(value, { phase: isShortString, sid: isNonNegativeInteger, at: optional(isSessionPosition) }),
);
const isIdList: ValueCheck = (value) => Array.isArray(value) && value.every(isNonNegativeInteger);
const isAttribution: ValueCheck = (value) => matchesShape(value, { by: isShortString, reason: optional(isString) });

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

/** The message as a request; undefined if it is none that a client would send. */
export function parseRequest(message: unknown): ClientRequest | undefined {
  if (!isObject(message)) return undefined;
  const { i, op } = message;
  const shape = typeof op === 'string' ? REQUEST_SHAPES.get(op) : undefined;
  if (shape === undefined || (i !== undefined && !isNonNegativeInteger(i)) || !matchesShape(message, shape))
    return undefined;
  return message as unknown as ClientRequest;
}

/** An append, with the large values that its entries name. */
export interface AppendRequest extends ClientRequest, RecordDraft {
  readonly i: number;
  readonly blobs?: readonly [string, string][];
}

/** The message as an append, by far the most frequent request; undefined if it is none. Its body is not looked at. */
export function parseAppendRequest(message: unknown): AppendRequest | undefined {
  const request = message as AppendRequest | null;
  if (request?.op !== 'append') return undefined;
  const { i, session, fence, firstSeq, count, body, blobs } = request;
  const isSound =
    isShortString(session) &&
    isNonNegativeInteger(i) &&
    isNonNegativeInteger(fence) &&
    isNonNegativeInteger(firstSeq) &&
    isNonNegativeInteger(count) &&
    isString(body);
  return isSound && isOptionalBlobList(blobs) ? request : undefined;
}

/** The message as an answer of a client; undefined if it is none. */
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

/** The message as one of the owner; undefined if it is none. */
export function parseOwnerMessage(message: unknown): OwnerMessage | undefined {
  return matchesShape(message, OWNER_MESSAGE_SHAPE) ? (message as OwnerMessage) : undefined;
}
