/** Prepares untrusted text for messages: removes escape sequences, control characters and secrets, and truncates it. */
import { stripHidden } from '../../base/hidden-characters.js';
import { type CutEdge, NO_REDACTION, type Redactor } from '../../base/redact.js';

/**
 * Removes escape sequences, hidden characters and surrounding whitespace, and redacts secrets. `cut` names the edge at
 * which the text was cut, so that a partial secret there is redacted too.
 */
export function sanitizeText(text: string, redactor: Redactor = NO_REDACTION, cut?: CutEdge): string {
  return redactor.redactText(stripHidden(text, cut === 'end').trim(), cut);
}

/** Returns at most the first `maxChars` code points of a text, ending with an ellipsis if it is longer. */
export function truncateEnd(text: string, maxChars: number): string {
  const characters = [...text.slice(0, 2 * maxChars)];
  return characters.length <= maxChars ? characters.join('') : `${characters.slice(0, maxChars - 1).join('')}…`;
}

/** Returns at most the last `maxChars` code points of a text, starting with an ellipsis if it is longer. */
export function truncateStart(text: string, maxChars: number): string {
  const characters = [...text.slice(-2 * maxChars)];
  return characters.length <= maxChars ? characters.join('') : `…${characters.slice(1 - maxChars).join('')}`;
}

/** Returns a short, sanitized description of a thrown value. */
export function describeError(thrown: unknown): string {
  return truncateEnd(sanitizeText(thrown instanceof Error ? `${thrown.name}: ${thrown.message}` : String(thrown)), 500);
}
