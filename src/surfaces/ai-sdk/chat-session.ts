/**
 * The session of a chat. A chat id comes from the browser, so it names a chat of the user who sends it and of nobody else: the
 * session is derived from both. A handler that knows no users has one namespace for everybody, in which a chat id is a session id.
 */
import { compositeId } from '../../base/composite-id.js';
import { digestOfText } from '../../journal/record.js';
import type { TurnStatus } from '../../protocol/trace.js';
import { parseChatId } from './chat-request.js';
import { HttpProblem } from './problem.js';

/** Which chat, and whose. */
export interface ChatAccess {
  readonly chatId: string;
  /** Undefined for a handler without the option `principal`. */
  readonly principal: string | undefined;
}

/** What finding a session needs of a host. */
export interface SessionHost {
  readonly archive: { turns(sessionId: string): Promise<readonly TurnStatus[]> };
}

/** Sessions that are derived here, and those of the host itself: no chat id reaches one. */
const RESERVED_SESSION_ID = /^(?:rondo:|u-[\w-]{32}$)/;

/**
 * The id of the session that holds a chat: to show its history when a page loads, or to look at it from the command line.
 *
 * @example uiMessages(await host.archive.events(await chatSession(host, { chatId: '1', principal: 'ada' })))
 */
export async function chatSession(host: SessionHost, { chatId, principal }: ChatAccess): Promise<string> {
  const id = parseChatId(chatId);
  if (principal === undefined) return unscopedSessionId(id);
  const own = `u-${digestOfText(compositeId('chat', /* guard: chat-bound-to-principal */ principal, id)).slice(0, 32)}`;
  if (RESERVED_SESSION_ID.test(id) || (await host.archive.turns(own)).length > 0) return own;
  // Chats were once kept under their id alone: one that belongs to this principal in all its turns stays where it is.
  const earlier = await host.archive.turns(id);
  return earlier.length > 0 && earlier.every((turn) => turn.principal === principal) ? id : own;
}

function unscopedSessionId(id: string): string {
  if (!RESERVED_SESSION_ID.test(id)) return id;
  throw new HttpProblem(422, 'INPUT_VALIDATION_FAILED', `The chat id "${id}" is reserved; choose another one.`);
}
