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
    'a principal and a key that read like those of somebody else when joined lead to their turn',
    'base/identity.ts',
    'part.replace(ESCAPED, escapeOf)',
    'part',
  ),
  guard(
    'aisdk.identity',
    'a chat gets the stream of another chat whose ids read alike when joined',
    'surfaces/ai-sdk/chat.ts',
    "['message', sessionId, key]",
    "['message', `${chatId}:${messageId}`]",
  ),
  guard(
    'identity.principal',
    'a key attaches to the turn of another principal, or keeps another principal from using it',
    'host/request.ts',
    'compositeId(principal, key)',
    'key',
  ),
  guard(
    'identity.principal',
    'a turn that was recorded under its key alone is handed to somebody else',
    'host/request.ts',
    'if (turn.principal !== principal) return',
    'if (false) return',
  ),
  guard(
    'identity.principal',
    'a turn that was recorded under its key alone is handed to somebody else',
    'host/request.ts',
    'known?.turn.principal === principal ?',
    'known !== undefined ?',
  ),
  guard(
    'identity.principal',
    'a turn that was recorded under its key alone runs again for its principal',
    'host/request.ts',
    'if (!(await archive.has(turnId))) return identity;',
    'return identity;',
  ),
  guard(
    'aisdk.identity',
    'a chat id leads into the chat of another user',
    'surfaces/ai-sdk/chat-session.ts',
    "compositeId('chat', principal, id)",
    "compositeId('chat', id)",
  ),
  guard(
    'aisdk.identity',
    'a request whose user is unknown is served',
    'surfaces/ai-sdk/chat.ts',
    "throw new Problem(403, 'NOT_AUTHORISED', 'The server does not know who asks; sign in first.');",
    'return undefined;',
  ),
  guard(
    'aisdk.identity',
    'a call gets the result of a call of another conversation that has its number',
    'surfaces/ai-sdk/tool.ts',
    'sessionId === undefined ? [conversations.of(call)] : []',
    '[]',
  ),
  guard(
    'aisdk.origin',
    'a form or a page sends a message that the browser asked nobody about',
    'surfaces/ai-sdk/provenance.ts',
    "if (request.method === 'POST') assertJson(request);",
    '',
  ),
  guard(
    'aisdk.origin',
    'a page of another origin sends a message',
    'surfaces/ai-sdk/provenance.ts',
    'if (!isTrusted(request, host, allowed)) throw foreign();',
    '',
  ),
  guard(
    'aisdk.origin',
    'a page whose name was pointed at this machine sends a message',
    'surfaces/ai-sdk/provenance.ts',
    'if (!isServed(host, served, isLocal)) throw notServed(host);',
    '',
  ),
];

proveGuards(() => new Workshop<Chatting>(chatting), guards);
