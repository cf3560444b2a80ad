/**
 * Maps chats to sessions. A chat id comes from the browser and is untrusted, so the session id is derived from the
 * principal and the chat id: a user never reaches chats of another user. A handler without users has a single
 * namespace, in which a chat id is a session id.
 */
import { compositeId } from '../../base/composite-id.js';
import { digestOfText } from '../../journal/record.js';
import type { TurnStatus } from '../../protocol/trace.js';
import { HttpProblem } from '../http/problem.js';
import { parseChatId } from './chat-request.js';
import { type HostOption, hostOf } from './host-option.js';

/** A chat and the user who requests it. */
export interface ChatAccess {
  /** The chat id that the client sends. */
  readonly chatId: string;
  /** The authenticated user; undefined for a handler without the option `principal`. */
  readonly principal: string | undefined;
}

/** The part of a host that `chatSession` uses. */
export interface SessionHost {
  readonly archive: { turns(sessionId: string): Promise<readonly TurnStatus[]> };
}

/** Session ids that no chat id may select: those of the host, and those derived from a principal. */
const RESERVED_SESSION_ID = /^(?:rondo:|u-[\w-]{32}$)/;

/**
 * Returns the id of the session of a chat. Use it to load the history of a page, or to find the chat on the command
 * line. Rejects with an HttpProblem of status 422 if the chat id is invalid or reserved.
 *
 * @example
 * const sessionId = await chatSession(rondo, { chatId: '1', principal: 'ada' });
 * const messages = uiMessages(await rondo.events(sessionId));
 */
export async function chatSession(host: HostOption<SessionHost>, { chatId, principal }: ChatAccess): Promise<string> {
  const { archive } = hostOf(host);
  const id = parseChatId(chatId);
  if (principal === undefined) return unscopedSessionId(id);
  const derivedId = `u-${digestOfText(compositeId('chat', /* guard: chat-bound-to-principal */ principal, id)).slice(0, 32)}`;
  if (RESERVED_SESSION_ID.test(id) || (await archive.turns(derivedId)).length > 0) return derivedId;
  // A session may exist under the plain chat id. It is used only if all of its turns belong to this principal.
  const turns = await archive.turns(id);
  return turns.length > 0 && turns.every((turn) => turn.principal === principal) ? id : derivedId;
}

function unscopedSessionId(id: string): string {
  if (!RESERVED_SESSION_ID.test(id)) return id;
  throw new HttpProblem(422, 'INPUT_VALIDATION_FAILED', `The chat id "${id}" is reserved; choose another one.`);
}
