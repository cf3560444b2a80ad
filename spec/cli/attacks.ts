// Output of a model or a tool that attacks a terminal or its user: control characters, sequences and imitations.

const codePoints = (from: number, to: number): number[] =>
  Array.from({ length: to - from + 1 }, (_, index) => from + index);

/** Control characters: C0 except line feed and tab, DEL, C1. */
const controls = [...codePoints(0, 8), ...codePoints(11, 31), ...codePoints(127, 159)];

/** Bidirectional marks, zero-width characters, blanks that count as letters, and unassigned code points. */
const invisible = [
  ...[0x061c, 0x200e, 0x200f, ...codePoints(0x202a, 0x202e), ...codePoints(0x2066, 0x2069)],
  ...[0x00ad, 0x034f, 0x115f, 0x1160, 0x17b4, 0x180e, 0x200b, 0x200c, 0x200d, 0x2060, 0x2061, 0x2800, 0x3164, 0xfe00],
  ...[0xfeff, 0xffa0, 0xfff9, 0x2028, 0x2029, 0xe000, 0xfdd0, 0x10ffff, 0xe0041, 0xe0100, 0xd800, 0xdc00],
];

const E = '\u001b';

/** Sequences that a terminal interprets. */
const sequences = [
  `${E}[2J${E}[H`,
  `${E}[1A${E}[2K? Approve? [y]es / [n]o / [l]ater › y`,
  `${E}[8mhidden${E}[0m`,
  `${E}[31mred`,
  `${E}]0;a new title\u0007`,
  `${E}]2;another${E}\\`,
  `${E}]8;;https://evil.example${E}\\click${E}]8;;${E}\\`,
  `${E}]52;c;ZXZpbA==\u0007`,
  `${E}P+q544e${E}\\`,
  `${E}[?1049h`,
  `${E}[6n`,
  `${E}c`,
  '\u009b2J',
  '\u009d0;title\u009c',
  'safe\rrm -rf /',
  'abc\b\b\bxyz',
];

/** Texts that imitate the output of Rondo. */
const imitations = [
  '\n? Approve? [y]es / [n]o / [l]ater › y\n✓ approved',
  '\n? Approval s-1.1:real\n  tool      harmless',
  '\r\n? Approve? [y]es / [n]o / [l]ater › ',
  `${' '.repeat(500)}? Approve? [y]es / [n]o / [l]ater › `,
  `${'x'.repeat(79)}? Approve? [y]es / [n]o / [l]ater › y`,
  `${'\n'.repeat(200)}› you typed this`,
  `${'\t'.repeat(60)}? Approve?`,
  '漢'.repeat(200),
  'e\u0301'.repeat(300),
  `${'─'.repeat(80)}\n? Approval\n${'─'.repeat(80)}`,
  'x'.repeat(1024 * 1024),
  `${'word '.repeat(200_000)}end`,
];

/** All attacks. Characters and sequences are between two words. */
export const attacks: readonly string[] = [
  ...[...controls, ...invisible].map((point) => `before${String.fromCharCode(...units(point))}after`),
  ...sequences.map((sequence) => `before${sequence}after`),
  ...imitations,
];

function units(point: number): number[] {
  if (point < 0x10000) return [point];
  return [0xd800 + ((point - 0x10000) >> 10), 0xdc00 + ((point - 0x10000) & 0x3ff)];
}

/** Characters that must never reach a terminal because it interprets or hides them. Line feeds are allowed. */
export const HARMFUL = /(?!\n)[\p{C}\p{Zl}\p{Zp}\p{Default_Ignorable_Code_Point}\u2800]/u;

/** Characters that JSON output must escape. Only the final line feed is allowed. */
export const HIDDEN_IN_JSON = /(?!\n)[\p{C}\p{Zl}\p{Zp}\p{Default_Ignorable_Code_Point}]/u;

const STYLES = new RegExp(`${E}\\[(?:1|2|22|31|32|33|36|39)m`, 'g');

/** Removes the styles that Rondo itself applies. */
export function withoutStyles(text: string): string {
  return text.replace(STYLES, '');
}
