/** Text from outside made fit for a message: no escape sequences, no control characters, no secrets, not too long. */
import { stripHidden } from '../../base/hidden-characters.js';
import { type Cut, NO_SECRETS, type Redactor } from '../../base/redact.js';

/** The whole text is given, or where it was cut: a secret must not be told because a part of it is missing. */
export function plain(text: string, secrets: Redactor = NO_SECRETS, cut?: Cut): string {
  return secrets.text(stripHidden(text, cut === 'end').trim(), cut);
}

/** The first characters of a text; a pair of surrogates is one character. */
export function firstOf(text: string, count: number): string {
  const points = [...text.slice(0, 2 * count)];
  return points.length <= count ? points.join('') : `${points.slice(0, count - 1).join('')}…`;
}

/** The last characters of a text. */
export function lastOf(text: string, count: number): string {
  const points = [...text.slice(-2 * count)];
  return points.length <= count ? points.join('') : `…${points.slice(1 - count).join('')}`;
}

/** What was thrown, as a short text. */
export function reasonOf(thrown: unknown): string {
  return firstOf(plain(thrown instanceof Error ? `${thrown.name}: ${thrown.message}` : String(thrown)), 500);
}
