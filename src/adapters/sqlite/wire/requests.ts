/**
 * What comes over the socket, checked at the door: another process may be of another build, or broken, and what it sends must neither
 * reach a commit that others share nor end the process that receives it.
 */
import { isObject } from '../../../base/own-property.js';
import type { Draft } from '../../../journal/record.js';
import type { Json } from '../../../protocol/json.js';
import type { ProcessId } from '../owner/process.js';
import type { WireError } from './errors.js';

export interface Request {
  /** The number under which it is answered; absent for what needs no answer. */
  readonly i?: number;
  readonly op: string;
}

/** An answer of a client to a request that was put to it. */
export interface AnswerMessage {
  readonly a: number;
}

/** What the owner sends: an answer, a piece of one, who was asked, or a request for this process. */
export interface Incoming {
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

type Check = (value: unknown) => boolean;
type Shape = Readonly<Record<string, Check>>;

const MAX_NAME_CHARS = 1000;
/** Deeper than any value that the runtime accepts, and shallow enough to be written again. */
const MAX_DEPTH = 500;

const isWhole: Check = (value) => Number.isSafeInteger(value) && (value as number) >= 0;
const isText: Check = (value) => typeof value === 'string';
const isName: Check = (value) => typeof value === 'string' && value.length <= MAX_NAME_CHARS;
const isJson: Check = (value) => isShallow(value, MAX_DEPTH);
const isPairOfTexts: Check = (value) => Array.isArray(value) && value.length === 2 && value.every(isText);
const isBlobs: Check = (value) => value === undefined || (Array.isArray(value) && value.every(isPairOfTexts));
const isError: Check = (value) => fits(value, { family: isName, message: isText });
const isProcess: Check = (value) => fits(value, { pid: isWhole, start: isName });
const isHeld: Check = (value) =>
  Array.isArray(value) && value.every((held) => fits(held, { session: isName, turn: isName }));
const isSnapshot: Check = (value) => fits(value, { next: isWhole, tail: isName, state: isJson });

const optional =
  (check: Check): Check =>
  (value) =>
    value === undefined || check(value);
const isTexts: Check = (value) => Array.isArray(value) && value.every(isText);
const isPosition: Check = (value) => fits(value, { blob: optional(isText), bad: isTexts, next: isWhole, prev: isName });
const isCursor: Check = optional((value) => fits(value, { phase: isName, sid: isWhole, at: optional(isPosition) }));
const isIds: Check = (value) => Array.isArray(value) && value.every(isWhole);
const isWord: Check = (value) => fits(value, { by: isName, reason: optional(isText) });

const shapes = new Map<string, Shape>(
  Object.entries({
    hello: { id: isName, process: isProcess, held: isHeld },
    bye: {},
    claim: { session: isName },
    read: { session: isName, from: isWhole },
    list: {},
    remove: { session: isName },
    get: { session: isName, digest: isName },
    load: { session: isName },
    save: { session: isName, snapshot: isSnapshot },
    acquire: { session: isName, turn: isName },
    release: { session: isName },
    holdings: {},
    ask: { session: isName, request: isJson },
    record: {},
    verify: { cursor: isCursor },
    accept: { ids: isIds, word: isWord },
    erase: { session: isName, word: isWord },
  }),
);

function fits(value: unknown, shape: Shape): boolean {
  if (!isObject(value)) return false;
  for (const key in shape) if (shape[key]?.(Object.hasOwn(value, key) ? value[key] : undefined) !== true) return false;
  return true;
}

function isShallow(value: unknown, depth: number): boolean {
  if (typeof value !== 'object' || value === null) return value !== undefined;
  if (depth === 0) return false;
  for (const member of Object.values(value)) if (!isShallow(member, depth - 1)) return false;
  return true;
}

/** The message as a request; undefined if it is none that a client would send. */
export function requestOf(message: unknown): Request | undefined {
  if (!isObject(message)) return undefined;
  const { i, op } = message;
  const shape = typeof op === 'string' ? shapes.get(op) : undefined;
  if (shape === undefined || (i !== undefined && !isWhole(i)) || !fits(message, shape)) return undefined;
  return message as unknown as Request;
}

/** An append, with the large values that its entries name. */
export interface AppendRequest extends Request, Draft {
  readonly i: number;
  readonly blobs?: readonly [string, string][];
}

/** The message as an append, by far the most frequent request; undefined if it is none. Its body is not looked at. */
export function appendOf(message: unknown): AppendRequest | undefined {
  const request = message as AppendRequest | null;
  if (request?.op !== 'append') return undefined;
  const { i, session, fence, first, count, body, blobs } = request;
  const isSound = isName(session) && isWhole(i) && isWhole(fence) && isWhole(first) && isWhole(count) && isText(body);
  return isSound && isBlobs(blobs) ? request : undefined;
}

/** The message as an answer of a client; undefined if it is none. */
export function answerOf(message: unknown): AnswerMessage | undefined {
  if (!isObject(message) || !isWhole(message.a)) return undefined;
  const { error, ...rest } = message;
  if (error !== undefined && !isError(error)) return undefined;
  return isJson(rest) && (error === undefined || isJson(error)) ? (message as unknown as AnswerMessage) : undefined;
}

const incoming: Shape = {
  i: optional(isWhole),
  error: optional(isError),
  asked: optional(isProcess),
  a: optional(isWhole),
  session: optional(isName),
};

/** The message as one of the owner; undefined if it is none. */
export function incomingOf(message: unknown): Incoming | undefined {
  return fits(message, incoming) ? (message as Incoming) : undefined;
}
