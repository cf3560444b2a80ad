// Preloaded before a snippet: records the output of each line in the file that RONDO_SNIPPET_OUTPUT names. The file name
// of the snippet is RONDO_SNIPPET_NAME.
import { appendFileSync } from 'node:fs';
import { format } from 'node:util';

const file = process.env.RONDO_SNIPPET_OUTPUT ?? '';
const position = `/${process.env.RONDO_SNIPPET_NAME ?? 'snippet.mjs'}:`;
const print = console.log;

/** @param {unknown[]} values */
console.log = (...values) => {
  const [, rest = ''] = (new Error('where').stack ?? '').split(position);
  appendFileSync(file, `${JSON.stringify({ line: Number.parseInt(rest, 10), text: format(...values) })}\n`);
  print(...values);
};
