/** Text from outside made fit for a message: no escape sequences, no control characters, no secrets, not too long. */
import { type Cut, NO_SECRETS, type Redactor } from '../../base/redact.js';

const ESC = '\u001b';
const BELL = '\u0007';

/** Colours and cursor moves, titles and links, device strings, and the two-character rest. */
const escapes = new RegExp(
  [
    `(?:${ESC}\\[|\u009b)[0-?]*[ -/]*[@-~]`,
    `${ESC}\\][^${BELL}${ESC}]*(?:${BELL}|${ESC}\\\\)`,
    `${ESC}[PX^_][^${ESC}]*${ESC}\\\\`,
    `${ESC}[@-Z\\\\^_]`,
  ].join('|'),
  'g',
);

/** An escape sequence that a text ends in the middle of: it must not hide that a secret stands before it. */
const unfinished = new RegExp(`(?:(?:${ESC}\\[|\u009b)[0-?]*[ -/]*|${ESC}\\][^${BELL}${ESC}]*|${ESC})$`);

/** Control characters but for tab and line feed, and those that turn the direction of text. */
const controls = /(?![\t\n])[\p{Cc}\u202a-\u202e\u2066-\u2069]/gu;

/** The whole text is given, or where it was cut: a secret must not be told because a part of it is missing. */
export function plain(text: string, secrets: Redactor = NO_SECRETS, cut?: Cut): string {
  const known = text.replace(escapes, '');
  const whole = cut === 'end' ? known.replace(unfinished, '') : known;
  return secrets.text(whole.replace(controls, '').trim(), cut);
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
