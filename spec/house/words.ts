// The words that no file may use: each has a plain term in docs/glossary.md. The parts are joined at run time, so that
// this file and a text search for the words both stay clean.

import type { SourceText } from './tree.js';

const parts: readonly (readonly [left: string, right: string])[] = [
  ['unless ', 'told'],
  ['some', 'body'],
  ['who', 'ever'],
  ['how-', 'manieth'],
  ['trod', 'den'],
  ['err', 'and'],
  ['\\bocca', 'sion(?!al)'],
  // Names of earlier versions.
  ['\\batten', 'dance\\b'],
  ['\\brecol', 'lection\\b'],
  ['\\bsie', 've\\b'],
];

const forbidden = new RegExp(parts.map(([left, right]) => left + right).join('|'), 'gi');

/** Returns the uses of forbidden words in a file, with their lines. */
export function wordFaults({ file, text }: SourceText): string[] {
  return text
    .split('\n')
    .flatMap((line, index) =>
      [...line.matchAll(forbidden)].map(
        ([word]) => `${file}:${index + 1} says '${word}'; use a term of docs/glossary.md`,
      ),
    );
}
