// Each guard of identities and origins, and its broken twin.

import type { RequirementId } from '../requirements.js';
import { type Chatting, chatting, identityChecks } from './identity-checks.js';
import { Workshop } from './library.js';
import { type Guard, proveGuards } from './prove.js';

function guard(
  id: RequirementId,
  disaster: keyof typeof identityChecks,
  file: string,
  from: string,
  to: string,
): Guard<Chatting> {
  return { id, disaster, file, from, to, check: identityChecks[disaster] };
}

const guards: readonly Guard<Chatting>[] = [
  guard(
    'identity.injective',
    'a principal and a key that read like those of another when joined are another turn',
    'base/identity.ts',
    'part.replace(ESCAPED, escapeOf)',
    'part',
  ),
  guard(
    'aisdk.identity',
    'chats whose ids read alike when joined have streams of their own',
    'surfaces/ai-sdk/chat.ts',
    "['message', sessionId, key]",
    "['message', `${chatId}:${messageId}`]",
  ),
  guard(
    'identity.principal',
    'a key belongs to its principal, and another principal can use the same key',
    'host/request.ts',
    'compositeId(principal, key)',
    'key',
  ),
  guard(
    'identity.principal',
    'a turn that was recorded under its key alone is handed to nobody but its principal',
    'host/request.ts',
    'if (turn.principal !== principal) return',
    'if (false) return',
  ),
  guard(
    'identity.principal',
    'a turn that was recorded under its key alone is handed to nobody but its principal',
    'host/request.ts',
    'known?.turn.principal === principal ?',
    'known !== undefined ?',
  ),
  guard(
    'identity.principal',
    'a turn that was recorded under its key alone does not run again for its principal',
    'host/request.ts',
    'if (!(await archive.has(turnId))) return identity;',
    'return identity;',
  ),
  guard(
    'aisdk.identity',
    'a chat id does not lead into the chat of another user',
    'surfaces/ai-sdk/chat-session.ts',
    "compositeId('chat', principal, id)",
    "compositeId('chat', id)",
  ),
  guard(
    'aisdk.identity',
    'a request whose user is unknown is refused',
    'surfaces/ai-sdk/chat.ts',
    "throw new Problem(403, 'NOT_AUTHORISED', 'The server does not know who asks; sign in first.');",
    'return undefined;',
  ),
  guard(
    'aisdk.identity',
    'calls of two conversations that have the same number have results of their own',
    'surfaces/ai-sdk/tool.ts',
    'sessionId === undefined ? [conversations.of(call)] : []',
    '[]',
  ),
  guard(
    'aisdk.origin',
    'a message that a form or a page can send without a preflight request is refused',
    'surfaces/ai-sdk/provenance.ts',
    "if (request.method === 'POST') assertJson(request);",
    '',
  ),
  guard(
    'aisdk.origin',
    'a message of a page of another origin is refused',
    'surfaces/ai-sdk/provenance.ts',
    'if (!isTrusted(request, host, allowed)) throw foreign();',
    '',
  ),
  guard(
    'aisdk.origin',
    'a message of a page whose name was pointed at this machine is refused',
    'surfaces/ai-sdk/provenance.ts',
    'if (!isServed(host, served, isLocal)) throw notServed(host);',
    '',
  ),
];

proveGuards(() => new Workshop<Chatting>(chatting), guards);
