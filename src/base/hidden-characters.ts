/**
 * Characters that a reader does not see or a terminal acts on. This is the only list of them; whatever prints, journals or
 * compares untrusted text uses it to escape, strip or reject them.
 */

/** A class for regular expressions: controls, direction marks, characters without width, blanks that are not spaces, unassigned ones. */
// guard: ignorable-characters-escaped
export const HIDDEN_CHARACTER: string =
  '[\\p{C}\\p{Zl}\\p{Zp}\\p{Default_Ignorable_Code_Point}\\u00a0\\u115f\\u1160\\u2800\\u3164\\uffa0]';

const HIDDEN_BUT_TAB_AND_LINE_FEED = new RegExp(`(?![\\t\\n])${HIDDEN_CHARACTER}`, 'gu');
const BLANKS = new RegExp(`(?:${HIDDEN_CHARACTER}|\\s)+`, 'gu');
const ORDINARY = /^[\n\t -~]*$/;

const ESC = '\u001b';
const BELL = '\u0007';

/** Terminal escape sequences: colours and cursor moves, titles and links, device strings, and two-character sequences. */
const ESCAPE_SEQUENCES = new RegExp(
  [
    `(?:${ESC}\\[|\u009b)[0-?]*[ -/]*[@-~]`,
    `${ESC}\\][^${BELL}${ESC}]*(?:${BELL}|${ESC}\\\\)`,
    `${ESC}[PX^_][^${ESC}]*${ESC}\\\\`,
    `${ESC}[@-Z\\\\^_]`,
  ].join('|'),
  'g',
);

/** The beginning of an escape sequence at the end of a text. */
const UNFINISHED_SEQUENCE = new RegExp(`(?:(?:${ESC}\\[|\u009b)[0-?]*[ -/]*|${ESC}\\][^${BELL}${ESC}]*|${ESC})$`);

/**
 * The text without terminal escape sequences and hidden characters; tabs and line feeds stay. If the text was cut at its
 * end, an unfinished escape sequence there goes too: it must not separate the beginning of a secret from the end of the text.
 */
export function stripHidden(text: string, isCutAtEnd = false): string {
  if (ORDINARY.test(text)) return text;
  const stripped = text.replace(ESCAPE_SEQUENCES, '');
  const whole = isCutAtEnd ? stripped.replace(UNFINISHED_SEQUENCE, '') : stripped;
  return whole.replace(HIDDEN_BUT_TAB_AND_LINE_FEED, '');
}

/** The text in one line: each run of white space and hidden characters becomes one space. */
export function singleLine(text: string): string {
  return text.replace(BLANKS, ' ');
}

/** The first `maxChars` UTF-16 units of a text, followed by `…` if that is not all of it. Never splits a surrogate pair. */
export function truncate(text: string, maxChars: number): string {
  return text.length <= maxChars ? text : `${text.slice(0, maxChars).replace(/[\ud800-\udbff]$/, '')}…`;
}
