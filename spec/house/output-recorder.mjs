// Preloaded before a snippet: records the output of each line in the file that RONDO_SNIPPET_OUTPUT names. The file name
// of a program that is not called `snippet` is in RONDO_SNIPPET_NAME.
import { appendFileSync } from 'node:fs';
import { format } from 'node:util';

const file = process.env.RONDO_SNIPPET_OUTPUT ?? '';
const position = new RegExp(`/${process.env.RONDO_SNIPPET_NAME ?? 'snippet.(?:mjs|ts)'}:(\\d+):\\d+`);
const print = console.log;

/** @param {unknown[]} values */
console.log = (...values) => {
  const line = position.exec(new Error('where').stack ?? '')?.[1];
  appendFileSync(file, `${JSON.stringify({ line: Number(line), text: format(...values) })}\n`);
  print(...values);
};
