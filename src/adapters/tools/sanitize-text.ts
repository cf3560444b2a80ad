/** Text from outside made fit for a message: no escape sequences, no control characters, no secrets, not too long. */
import { stripHidden } from '../../base/hidden-characters.js';
import { type CutEdge, NO_REDACTION, type Redactor } from '../../base/redact.js';

/** The whole text is given, or where it was cut: a secret must not be told because a part of it is missing. */
export function sanitizeText(text: string, secrets: Redactor = NO_REDACTION, cut?: CutEdge): string {
  return secrets.redactText(stripHidden(text, cut === 'end').trim(), cut);
}

/** The first characters of a text; a pair of surrogates is one character. */
export function truncateEnd(text: string, count: number): string {
  const points = [...text.slice(0, 2 * count)];
  return points.length <= count ? points.join('') : `${points.slice(0, count - 1).join('')}…`;
}

/** The last characters of a text. */
export function truncateStart(text: string, count: number): string {
  const points = [...text.slice(-2 * count)];
  return points.length <= count ? points.join('') : `…${points.slice(1 - count).join('')}`;
}

/** What was thrown, as a short text. */
export function describeError(thrown: unknown): string {
  return truncateEnd(sanitizeText(thrown instanceof Error ? `${thrown.name}: ${thrown.message}` : String(thrown)), 500);
}
