/**
 * What a client of the AI SDK asks for. Of the messages it sends only two things are taken: the text of the user message
 * that is last, or the answers to approvals in an assistant message. What else it says of the past is used, at most, to
 * not tell it again what it has.
 */
import { isObject, ownProperty } from '../../base/own-property.js';
import { Problem } from './problem.js';

/** A prompt of the user. */
export interface Prompt {
  readonly kind: 'prompt';
  readonly chatId: string;
  readonly messageId: string;
  readonly text: string;
  /** The client wants another answer to a message that was answered. */
  readonly again: boolean;
}

/** One answer to an approval, and the tool part that it was given in. */
export interface Answer {
  readonly approvalId: string;
  readonly approved: boolean;
  readonly reason?: string;
  readonly toolCallId: string;
}

/** Answers, and what the client has of the message that they are about. */
export interface Answers {
  readonly kind: 'answers';
  readonly chatId: string;
  readonly messageId: string;
  readonly answers: readonly Answer[];
  readonly steps: number;
  readonly tools: readonly string[];
  /** The approvals that the client was asked for. */
  readonly approvals: readonly string[];
}

/** The user wants what runs to stop. */
export interface Stop {
  readonly kind: 'stop';
  readonly chatId: string;
}

export type ChatRequest = Prompt | Answers | Stop;

const CHAT = /^[A-Za-z0-9_:-][A-Za-z0-9_.:-]{0,99}$/;
const ID_LENGTH = 400;
const REASON_LENGTH = 2000;
const MOST_ANSWERS = 100;
const INVALID = 'INPUT_VALIDATION_FAILED';

/** The id of a chat, as its client names it. */
export function chatIdOf(value: unknown): string {
  if (typeof value === 'string' && CHAT.test(value)) return value;
  throw new Problem(
    422,
    INVALID,
    'The id of a chat is 1 to 100 letters, digits or _ . : - ; it does not begin with a dot.',
  );
}

/** Reads the body of a POST. */
export async function readChatRequest(request: Request, maxBytes: number): Promise<ChatRequest> {
  const body = parsed(await textOf(request, maxBytes));
  const chatId = chatIdOf(ownProperty(body, 'id'));
  if (ownProperty(body, 'abort') === true) return { kind: 'stop', chatId };
  const messages = ownProperty(body, 'messages');
  if (!Array.isArray(messages)) throw new Problem(422, INVALID, '"messages" must be a list.');
  const messageId = ownProperty(body, 'messageId');
  const named = messages.findLast(
    (one) => ownProperty(one, 'id') === messageId && ownProperty(one, 'role') === 'assistant',
  );
  const message: unknown = named ?? messages.at(-1);
  const role = ownProperty(message, 'role');
  if (role === 'assistant') return answersOf(chatId, message);
  if (role !== 'user') throw new Problem(422, INVALID, 'The last message must be of the user, or hold answers.');
  return promptOf(chatId, message, { edited: messageId, trigger: ownProperty(body, 'trigger') });
}

function promptOf(
  chatId: string,
  message: unknown,
  { edited, trigger }: { readonly edited: unknown; readonly trigger: unknown },
): Prompt {
  const messageId = idOf(message);
  const again = trigger === 'regenerate-message';
  if (!again && edited === messageId) {
    throw new Problem(409, 'KEY_CONFLICT', 'A message that was sent stays as it was sent; send another one instead.');
  }
  const parts = partsOf(message);
  if (parts.some((part) => ownProperty(part, 'type') === 'file')) {
    throw new Problem(415, INVALID, 'Files are not taken here: a message is text.');
  }
  const text = parts.flatMap((part) => (ownProperty(part, 'type') === 'text' ? [ownProperty(part, 'text')] : []));
  const whole = text.filter((piece) => typeof piece === 'string').join('\n');
  if (whole.trim() === '') throw new Problem(422, INVALID, 'The message has no text.');
  return { kind: 'prompt', chatId, messageId, text: whole, again };
}

function answersOf(chatId: string, message: unknown): Answers {
  const messageId = idOf(message);
  const parts = partsOf(message);
  const answers = parts.flatMap(answerOf);
  if (answers.length === 0) {
    throw new Problem(422, INVALID, 'The last message answers no approval, and nothing else of it is taken.');
  }
  if (answers.length > MOST_ANSWERS)
    throw new Problem(422, INVALID, `At most ${MOST_ANSWERS} answers are taken at once.`);
  return {
    kind: 'answers',
    chatId,
    messageId,
    answers,
    steps: parts.filter((part) => ownProperty(part, 'type') === 'step-start').length,
    tools: texts(parts.map((part) => ownProperty(part, 'toolCallId'))),
    approvals: texts(parts.map((part) => ownProperty(ownProperty(part, 'approval'), 'id'))),
  };
}

/** The answer that a part holds, and nothing more than an answer. */
function answerOf(part: unknown): readonly Answer[] {
  const type = ownProperty(part, 'type');
  const tool = type === 'dynamic-tool' || (typeof type === 'string' && type.startsWith('tool-'));
  if (!tool || ownProperty(part, 'state') !== 'approval-responded') return [];
  const approval = ownProperty(part, 'approval');
  const [approvalId, approved, reason] = ['id', 'approved', 'reason'].map((name) => ownProperty(approval, name));
  const toolCallId = ownProperty(part, 'toolCallId');
  if (!isId(approvalId) || typeof approved !== 'boolean' || typeof toolCallId !== 'string') {
    throw new Problem(422, INVALID, 'An answer has the id of its approval and "approved", true or false.');
  }
  const said = typeof reason === 'string' && reason !== '' ? { reason: reason.slice(0, REASON_LENGTH) } : {};
  return [{ approvalId, approved, toolCallId, ...said }];
}

function idOf(message: unknown): string {
  const id = ownProperty(message, 'id');
  if (isId(id)) return id;
  throw new Problem(422, INVALID, `A message has an id of 1 to ${ID_LENGTH} characters.`);
}

function partsOf(message: unknown): readonly unknown[] {
  const parts = ownProperty(message, 'parts');
  if (Array.isArray(parts)) return parts;
  throw new Problem(422, INVALID, 'A message has a list of parts.');
}

function isId(value: unknown): value is string {
  return typeof value === 'string' && value !== '' && value.length <= ID_LENGTH;
}

function texts(values: readonly unknown[]): readonly string[] {
  return values.filter((value) => typeof value === 'string');
}

function parsed(text: string): object {
  let body: unknown;
  try {
    body = JSON.parse(text);
  } catch {
    throw new Problem(400, INVALID, 'The body is not JSON.');
  }
  if (isObject(body)) return body;
  throw new Problem(422, INVALID, 'The body must be an object with "id" and "messages".');
}

/** The body, read only as far as it is allowed to be long. */
async function textOf(request: Request, maxBytes: number): Promise<string> {
  const decoder = new TextDecoder('utf-8', { fatal: true });
  let text = '';
  let length = 0;
  for await (const bytes of (request.body ?? []) as AsyncIterable<Uint8Array>) {
    length += bytes.length;
    if (length > maxBytes) {
      const advice = 'send only the last message (prepareSendMessagesRequest of the transport)';
      throw new Problem(413, INVALID, `A request has at most ${maxBytes} bytes; ${advice}.`);
    }
    text += decodedBy(decoder, bytes);
  }
  return text + decodedBy(decoder);
}

/** Text of bytes. What is no UTF-8 is refused: read as replacement characters, different ids would become one. */
function decodedBy(decoder: InstanceType<typeof TextDecoder>, bytes?: Uint8Array): string {
  try {
    return decoder.decode(bytes, { stream: bytes !== undefined });
  } catch {
    throw new Problem(400, INVALID, 'The body is not UTF-8.');
  }
}
