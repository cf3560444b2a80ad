// Guards of identities and origins.

import { chatParts, identityChecks } from './identity-checks.js';
import { guardsOf, proveGuards } from './prove.js';

const guard = guardsOf(identityChecks);

proveGuards(chatParts, [
  guard(
    'identity.injective',
    'different pairs of principal and key never identify the same turn',
    'composite-id-escapes-parts',
    { take: 'receiver' },
  ),
  guard('aisdk.identity', 'chats whose joined ids are equal have separate streams', 'stream-bound-to-chat', {
    rewrite: [/, \w+, \w+\]/, ', `${chatId}:${messageId}`]'],
  }),
  guard('identity.principal', 'two principals can use the same key independently', 'turn-key-bound-to-principal', {
    take: 1,
  }),
  guard(
    'identity.principal',
    'a turn that was recorded under its key alone is returned only to its principal',
    'turn-of-other-principal-refused',
    'never',
  ),
  guard(
    'identity.principal',
    'a turn that was recorded under its key alone is returned only to its principal',
    'legacy-turn-bound-to-principal',
    'always',
  ),
  guard(
    'identity.principal',
    'a turn that was recorded under its key alone does not run again',
    'legacy-turn-found-again',
    'always',
  ),
  guard('aisdk.identity', 'a chat id gives no access to the chat of another user', 'chat-bound-to-principal', 'drop'),
  guard('aisdk.identity', 'a request of an unknown user is refused', 'unknown-user-refused', 'drop'),
  guard(
    'aisdk.identity',
    'calls with the same number in two conversations have separate results',
    'calls-bound-to-conversation',
    { take: 1 },
  ),
  guard('aisdk.origin', 'a message that needs no preflight request is refused', 'post-is-json', 'drop'),
  guard('aisdk.origin', 'a message from another origin is refused', 'foreign-origin-refused', 'drop'),
  guard(
    'aisdk.origin',
    'a message for a host name that is not served is refused',
    'only-served-hosts-accepted',
    'drop',
  ),
]);
