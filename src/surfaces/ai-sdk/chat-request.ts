/**
 * What a client of the AI SDK asks for. Of the messages it sends only two things are taken: the text of the user message
 * that is last, or the answers to approvals in an assistant message. What else it says of the past is used, at most, to
 * not tell it again what it has.
 */
import { isObject, ownProperty } from '../../base/own-property.js';
import { HttpProblem } from './problem.js';

/** A prompt of the user. */
export interface PromptRequest {
  readonly kind: 'prompt';
  readonly chatId: string;
  readonly messageId: string;
  readonly text: string;
  /** The client wants another answer to a message that was answered. */
  readonly isRegeneration: boolean;
}

/** One answer to an approval, and the tool part that it was given in. */
export interface SubmittedAnswer {
  readonly approvalId: string;
  readonly approved: boolean;
  readonly reason?: string;
  readonly toolCallId: string;
}

/** Answers, and what the client has of the message that they are about. */
export interface AnswersRequest {
  readonly kind: 'answers';
  readonly chatId: string;
  readonly messageId: string;
  readonly answers: readonly SubmittedAnswer[];
  readonly stepCount: number;
  readonly toolCallIds: readonly string[];
  /** The approvals that the client was asked for. */
  readonly approvalIds: readonly string[];
}

/** The user wants what runs to stop. */
export interface StopRequest {
  readonly kind: 'stop';
  readonly chatId: string;
}

export type ChatRequest = PromptRequest | AnswersRequest | StopRequest;

const CHAT_ID_PATTERN = /^[A-Za-z0-9_:-][A-Za-z0-9_.:-]{0,99}$/;
const MAX_ID_CHARS = 400;
const MAX_REASON_CHARS = 2000;
const MAX_ANSWERS = 100;
const INVALID_INPUT_CODE = 'INPUT_VALIDATION_FAILED';

/** The id of a chat, as its client names it. */
export function parseChatId(value: unknown): string {
  if (typeof value === 'string' && CHAT_ID_PATTERN.test(value)) return value;
  throw new HttpProblem(
    422,
    INVALID_INPUT_CODE,
    'The id of a chat is 1 to 100 letters, digits or _ . : - ; it does not begin with a dot.',
  );
}

/** Reads the body of a POST. */
export async function readChatRequest(request: Request, maxBytes: number): Promise<ChatRequest> {
  const body = parseBody(await readBody(request, maxBytes));
  const chatId = parseChatId(ownProperty(body, 'id'));
  if (ownProperty(body, 'abort') === true) return { kind: 'stop', chatId };
  const messages = ownProperty(body, 'messages');
  if (!Array.isArray(messages)) throw new HttpProblem(422, INVALID_INPUT_CODE, '"messages" must be a list.');
  const messageId = ownProperty(body, 'messageId');
  const named = messages.findLast(
    (one) => ownProperty(one, 'id') === messageId && ownProperty(one, 'role') === 'assistant',
  );
  const message: unknown = named ?? messages.at(-1);
  const role = ownProperty(message, 'role');
  if (role === 'assistant') return parseAnswers(chatId, message);
  if (role !== 'user')
    throw new HttpProblem(422, INVALID_INPUT_CODE, 'The last message must be of the user, or hold answers.');
  return parsePrompt(chatId, message, { edited: messageId, trigger: ownProperty(body, 'trigger') });
}

function parsePrompt(
  chatId: string,
  message: unknown,
  { edited, trigger }: { readonly edited: unknown; readonly trigger: unknown },
): PromptRequest {
  const messageId = messageIdOf(message);
  const again = trigger === 'regenerate-message';
  if (!again && edited === messageId) {
    throw new HttpProblem(
      409,
      'KEY_CONFLICT',
      'A message that was sent stays as it was sent; send another one instead.',
    );
  }
  const parts = messagePartsOf(message);
  if (parts.some((part) => ownProperty(part, 'type') === 'file')) {
    throw new HttpProblem(415, INVALID_INPUT_CODE, 'Files are not taken here: a message is text.');
  }
  const text = parts.flatMap((part) => (ownProperty(part, 'type') === 'text' ? [ownProperty(part, 'text')] : []));
  const whole = text.filter((piece) => typeof piece === 'string').join('\n');
  if (whole.trim() === '') throw new HttpProblem(422, INVALID_INPUT_CODE, 'The message has no text.');
  return { kind: 'prompt', chatId, messageId, text: whole, isRegeneration: again };
}

function parseAnswers(chatId: string, message: unknown): AnswersRequest {
  const messageId = messageIdOf(message);
  const parts = messagePartsOf(message);
  const answers = parts.flatMap(parseAnswer);
  if (answers.length === 0) {
    throw new HttpProblem(
      422,
      INVALID_INPUT_CODE,
      'The last message answers no approval, and nothing else of it is taken.',
    );
  }
  if (answers.length > MAX_ANSWERS)
    throw new HttpProblem(422, INVALID_INPUT_CODE, `At most ${MAX_ANSWERS} answers are taken at once.`);
  return {
    kind: 'answers',
    chatId,
    messageId,
    answers,
    stepCount: parts.filter((part) => ownProperty(part, 'type') === 'step-start').length,
    toolCallIds: stringsIn(parts.map((part) => ownProperty(part, 'toolCallId'))),
    approvalIds: stringsIn(parts.map((part) => ownProperty(ownProperty(part, 'approval'), 'id'))),
  };
}

/** The answer that a part holds, and nothing more than an answer. */
function parseAnswer(part: unknown): readonly SubmittedAnswer[] {
  const type = ownProperty(part, 'type');
  const tool = type === 'dynamic-tool' || (typeof type === 'string' && type.startsWith('tool-'));
  if (!tool || ownProperty(part, 'state') !== 'approval-responded') return [];
  const approval = ownProperty(part, 'approval');
  const [approvalId, approved, reason] = ['id', 'approved', 'reason'].map((name) => ownProperty(approval, name));
  const toolCallId = ownProperty(part, 'toolCallId');
  if (!isId(approvalId) || typeof approved !== 'boolean' || typeof toolCallId !== 'string') {
    throw new HttpProblem(
      422,
      INVALID_INPUT_CODE,
      'An answer has the id of its approval and "approved", true or false.',
    );
  }
  const said = typeof reason === 'string' && reason !== '' ? { reason: reason.slice(0, MAX_REASON_CHARS) } : {};
  return [{ approvalId, approved, toolCallId, ...said }];
}

function messageIdOf(message: unknown): string {
  const id = ownProperty(message, 'id');
  if (isId(id)) return id;
  throw new HttpProblem(422, INVALID_INPUT_CODE, `A message has an id of 1 to ${MAX_ID_CHARS} characters.`);
}

function messagePartsOf(message: unknown): readonly unknown[] {
  const parts = ownProperty(message, 'parts');
  if (Array.isArray(parts)) return parts;
  throw new HttpProblem(422, INVALID_INPUT_CODE, 'A message has a list of parts.');
}

function isId(value: unknown): value is string {
  return typeof value === 'string' && value !== '' && value.length <= MAX_ID_CHARS;
}

function stringsIn(values: readonly unknown[]): readonly string[] {
  return values.filter((value) => typeof value === 'string');
}

function parseBody(text: string): object {
  let body: unknown;
  try {
    body = JSON.parse(text);
  } catch {
    throw new HttpProblem(400, INVALID_INPUT_CODE, 'The body is not JSON.');
  }
  if (isObject(body)) return body;
  throw new HttpProblem(422, INVALID_INPUT_CODE, 'The body must be an object with "id" and "messages".');
}

/** The body, read only as far as it is allowed to be long. */
async function readBody(request: Request, maxBytes: number): Promise<string> {
  const decoder = new TextDecoder('utf-8', { fatal: true });
  let text = '';
  let length = 0;
  for await (const bytes of (request.body ?? []) as AsyncIterable<Uint8Array>) {
    length += bytes.length;
    if (length > maxBytes) {
      const advice = 'send only the last message (prepareSendMessagesRequest of the transport)';
      throw new HttpProblem(413, INVALID_INPUT_CODE, `A request has at most ${maxBytes} bytes; ${advice}.`);
    }
    text += decodeUtf8(decoder, bytes);
  }
  return text + decodeUtf8(decoder);
}

/** Text of bytes. What is no UTF-8 is refused: read as replacement characters, different ids would become one. */
function decodeUtf8(decoder: InstanceType<typeof TextDecoder>, bytes?: Uint8Array): string {
  try {
    return decoder.decode(bytes, { stream: bytes !== undefined });
  } catch {
    throw new HttpProblem(400, INVALID_INPUT_CODE, 'The body is not UTF-8.');
  }
}
