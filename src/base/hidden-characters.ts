/**
 * Hidden characters: invisible ones and those that a terminal interprets. Code that prints, journals or compares
 * untrusted text uses this list to escape, strip or reject them. (Loop ids have a stricter rule of their own.)
 */

/**
 * A regular expression class: control and format characters (direction marks, zero-width characters), line and
 * paragraph separators, the no-break space, blank letters (Hangul fillers, the Braille blank), lone surrogates, and
 * private-use and unassigned code points. Other Unicode spaces, such as the em space, are not in it.
 */
// guard: ignorable-characters-escaped
export const HIDDEN_CHARACTER: string =
  '[\\p{C}\\p{Zl}\\p{Zp}\\p{Default_Ignorable_Code_Point}\\u00a0\\u115f\\u1160\\u2800\\u3164\\uffa0]';

const HIDDEN_BUT_TAB_AND_LINE_FEED = new RegExp(`(?![\\t\\n])${HIDDEN_CHARACTER}`, 'gu');
const BLANKS = new RegExp(`(?:${HIDDEN_CHARACTER}|\\s)+`, 'gu');
const ORDINARY = /^[\n\t -~]*$/;

const ESC = '\u001b';
const BELL = '\u0007';

/**
 * Complete terminal escape sequences: colours and cursor moves, titles and links, device strings, and two-character
 * sequences.
 */
const ESCAPE_SEQUENCES = new RegExp(
  [
    `(?:${ESC}\\[|\u009b)[0-?]*[ -/]*[@-~]`,
    `${ESC}\\][^${BELL}${ESC}]*(?:${BELL}|${ESC}\\\\)`,
    `${ESC}[PX^_][^${ESC}]*${ESC}\\\\`,
    `${ESC}[@-Z\\\\^_]`,
  ].join('|'),
  'g',
);

/** An incomplete escape sequence at the end of a text. */
const UNFINISHED_SEQUENCE = new RegExp(`(?:(?:${ESC}\\[|\u009b)[0-?]*[ -/]*|${ESC}\\][^${BELL}${ESC}]*|${ESC})$`);

/**
 * Removes terminal escape sequences and hidden characters; keeps tabs and line feeds. If the text was cut at its end,
 * an incomplete escape sequence there is removed too: otherwise the redactor could not find a cut secret in front of
 * it.
 */
export function stripHidden(text: string, isCutAtEnd = false): string {
  if (ORDINARY.test(text)) return text;
  const complete = text.replace(ESCAPE_SEQUENCES, '');
  const stripped = isCutAtEnd ? complete.replace(UNFINISHED_SEQUENCE, '') : complete;
  return stripped.replace(HIDDEN_BUT_TAB_AND_LINE_FEED, '');
}

/** Returns the text in one line: each run of white space and hidden characters becomes one space. */
export function singleLine(text: string): string {
  return text.replace(BLANKS, ' ');
}

/**
 * Returns the first `maxChars` UTF-16 units of a text, followed by `…` if the text is longer. Never splits a surrogate
 * pair.
 */
export function truncate(text: string, maxChars: number): string {
  return text.length <= maxChars ? text : `${text.slice(0, maxChars).replace(/[\ud800-\udbff]$/, '')}…`;
}
