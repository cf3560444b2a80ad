// Preloaded before a snippet: records the output of each line in the file that RONDO_SNIPPET_OUTPUT names.
import { appendFileSync } from 'node:fs';
import { format } from 'node:util';

const file = process.env.RONDO_SNIPPET_OUTPUT ?? '';
const print = console.log;

/** @param {unknown[]} values */
console.log = (...values) => {
  const line = /snippet\.(?:mjs|ts):(\d+):\d+/.exec(new Error('where').stack ?? '')?.[1];
  appendFileSync(file, `${JSON.stringify({ line: Number(line), text: format(...values) })}\n`);
  print(...values);
};
