/** The names of signals. Some are reserved for the runtime, which sends approval answers and messages as signals. */
import type { MessageMode } from '../views/message-inbox.js';
import { APPROVAL_SIGNAL_PREFIX } from '../views/turns.js';

const MAX_NAME_CHARS = 200;
/** Each reserved name, and what to use in its place. */
const MESSAGE_NAMES: Readonly<Record<MessageMode, string>> = {
  steer: 'it is reserved for messages to agents: use sendMessage',
  queue: 'it is reserved for messages to agents: use sendMessage',
};

/** Returns why a text cannot be the name of a signal of a user; undefined if it can. */
export function signalNameProblem(name: unknown): string | undefined {
  if (typeof name !== 'string' || name.trim() === '' || name.length > MAX_NAME_CHARS)
    return `a name is text of 1 to ${MAX_NAME_CHARS} characters`;
  // guard: approval-signal-reserved
  if (name.startsWith(APPROVAL_SIGNAL_PREFIX)) return 'it is reserved for approvals: answer the approval';
  return Object.hasOwn(MESSAGE_NAMES, name) ? MESSAGE_NAMES[name as MessageMode] : undefined;
}
