/**
 * Parses the requests of an AI SDK client. Only two parts of the client's messages have an effect: the last user message
 * (its id and text), and approval answers in an assistant message. The other parts of that assistant message only
 * determine which chunks the client already has.
 */
import { isObject, ownProperty } from '../../base/own-property.js';
import { HttpProblem } from '../http/problem.js';
import { readBody } from '../http/request-body.js';

/** A user message to reply to: a new one, or an earlier one if `isRegeneration` is true. */
export interface PromptRequest {
  readonly kind: 'prompt';
  readonly chatId: string;
  readonly messageId: string;
  readonly text: string;
  /** True if the client requests another reply to a message that already has one. */
  readonly isRegeneration: boolean;
}

/** One answer to an approval, with the id of the tool call whose part contains it. */
interface SubmittedAnswer {
  readonly approvalId: string;
  readonly approved: boolean;
  readonly reason?: string;
  readonly toolCallId: string;
}

/** Approval answers, with the client's progress in the message that contains them. */
export interface AnswersRequest {
  readonly kind: 'answers';
  readonly chatId: string;
  readonly messageId: string;
  readonly answers: readonly SubmittedAnswer[];
  /** The number of steps in the message. */
  readonly stepCount: number;
  /** The tool calls in the message. */
  readonly toolCallIds: readonly string[];
  /** The approvals that the client has received. */
  readonly approvalIds: readonly string[];
}

/** A request to cancel the running turns of a chat. */
interface StopRequest {
  readonly kind: 'stop';
  readonly chatId: string;
}

/** A parsed `POST` request. */
type ChatRequest = PromptRequest | AnswersRequest | StopRequest;

const CHAT_ID_PATTERN = /^[A-Za-z0-9_:-][A-Za-z0-9_.:-]{0,99}$/;
const MAX_ID_CHARS = 400;
const MAX_REASON_CHARS = 2000;
const MAX_ANSWERS = 100;
const SIZE_ADVICE = 'send only the last message (prepareSendMessagesRequest of the transport)';
const INVALID_INPUT_CODE = 'INPUT_VALIDATION_FAILED';

/** Returns the value if it is a valid chat id; throws a 422 problem otherwise. */
export function parseChatId(value: unknown): string {
  if (typeof value === 'string' && CHAT_ID_PATTERN.test(value)) return value;
  throw new HttpProblem(
    422,
    INVALID_INPUT_CODE,
    'A chat id has 1 to 100 letters, digits or _ . : - and does not begin with a dot.',
  );
}

/** Reads and parses the body of a `POST`. Throws an `HttpProblem` if it is invalid or longer than `maxBytes`. */
export async function readChatRequest(request: Request, maxBytes: number): Promise<ChatRequest> {
  const body = parseBody(decodeUtf8(await readBody(request, maxBytes, SIZE_ADVICE)));
  const chatId = parseChatId(ownProperty(body, 'id'));
  if (ownProperty(body, 'abort') === true) return { kind: 'stop', chatId };
  const messages = ownProperty(body, 'messages');
  if (!Array.isArray(messages)) throw new HttpProblem(422, INVALID_INPUT_CODE, '"messages" must be a list.');
  const messageId = ownProperty(body, 'messageId');
  const answered = messages.findLast(
    (candidate) => ownProperty(candidate, 'id') === messageId && ownProperty(candidate, 'role') === 'assistant',
  );
  const message: unknown = answered ?? messages.at(-1);
  const role = ownProperty(message, 'role');
  if (role === 'assistant') return parseAnswers(chatId, message);
  if (role !== 'user')
    throw new HttpProblem(
      422,
      INVALID_INPUT_CODE,
      'The last message must be a user message, or an assistant message with approval answers.',
    );
  return parsePrompt(chatId, message, { editedId: messageId, trigger: ownProperty(body, 'trigger') });
}

function parsePrompt(
  chatId: string,
  message: unknown,
  { editedId, trigger }: { readonly editedId: unknown; readonly trigger: unknown },
): PromptRequest {
  const messageId = messageIdOf(message);
  const isRegeneration = trigger === 'regenerate-message';
  if (!isRegeneration && editedId === messageId) {
    throw new HttpProblem(409, 'KEY_CONFLICT', 'A sent message cannot be edited; send a new message instead.');
  }
  const parts = messagePartsOf(message);
  if (parts.some((part) => ownProperty(part, 'type') === 'file')) {
    throw new HttpProblem(415, INVALID_INPUT_CODE, 'Files are not supported; send text only.');
  }
  const texts = parts.flatMap((part) => (ownProperty(part, 'type') === 'text' ? [ownProperty(part, 'text')] : []));
  const text = stringsIn(texts).join('\n');
  if (text.trim() === '') throw new HttpProblem(422, INVALID_INPUT_CODE, 'The message has no text.');
  return { kind: 'prompt', chatId, messageId, text, isRegeneration };
}

function parseAnswers(chatId: string, message: unknown): AnswersRequest {
  const messageId = messageIdOf(message);
  const parts = messagePartsOf(message);
  const answers = parts.flatMap(parseAnswer);
  if (answers.length === 0) {
    throw new HttpProblem(
      422,
      INVALID_INPUT_CODE,
      'The assistant message contains no approval answer. Only approval answers are accepted in it.',
    );
  }
  if (answers.length > MAX_ANSWERS)
    throw new HttpProblem(422, INVALID_INPUT_CODE, `A request has at most ${MAX_ANSWERS} approval answers.`);
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

/** Returns the approval answer in a message part, if any. All other members are ignored. */
function parseAnswer(part: unknown): readonly SubmittedAnswer[] {
  const type = ownProperty(part, 'type');
  const isToolPart = type === 'dynamic-tool' || (typeof type === 'string' && type.startsWith('tool-'));
  if (!isToolPart || ownProperty(part, 'state') !== 'approval-responded') return [];
  const approval = ownProperty(part, 'approval');
  const [approvalId, approved, reason] = ['id', 'approved', 'reason'].map((name) => ownProperty(approval, name));
  const toolCallId = ownProperty(part, 'toolCallId');
  if (!isId(approvalId) || typeof approved !== 'boolean' || typeof toolCallId !== 'string') {
    throw new HttpProblem(
      422,
      INVALID_INPUT_CODE,
      'An approval answer has the id of its approval, and "approved" is true or false.',
    );
  }
  const explanation = typeof reason === 'string' && reason !== '' ? { reason: reason.slice(0, MAX_REASON_CHARS) } : {};
  return [{ approvalId, approved, toolCallId, ...explanation }];
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

/** Decodes a body. Throws a 400 problem for invalid UTF-8: with replacement characters, different ids would become equal. */
function decodeUtf8(body: Uint8Array): string {
  try {
    return new TextDecoder('utf-8', { fatal: true }).decode(body);
  } catch {
    throw new HttpProblem(400, INVALID_INPUT_CODE, 'The body is not UTF-8.');
  }
}
