// Searches the notes. The score of a note is the number of keywords that it contains.

import { readFile } from 'node:fs/promises';

/** @typedef {{ id: string, text: string }} Doc */
/** @typedef {{ config: { corpus: string, limit: number }, log(level: 'info', message: string): void }} Call */

/** @param {{ keywords: string[] }} input @param {Call} call */
export async function search({ keywords }, { config, log }) {
  /** @type {Doc[]} */
  const corpus = JSON.parse(await readFile(new URL(config.corpus, import.meta.url), 'utf8'));
  const lowerCased = keywords.map((word) => word.toLowerCase());
  const scored = corpus.map((document) => {
    const words = new Set(document.text.toLowerCase().match(/\p{L}+/gu));
    return { ...document, score: lowerCased.filter((word) => words.has(word)).length };
  });
  const documents = scored.filter(({ score }) => score > 0).sort((a, b) => b.score - a.score);
  log('info', `${documents.length} of ${corpus.length} notes fit`);
  return { documents: documents.slice(0, config.limit) };
}
