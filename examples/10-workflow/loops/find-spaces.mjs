#!/usr/bin/env node
// Lists the lines that end with a space: `{ verb, args: [folder] }` on stdin, `{ files, errors }` on stdout.

import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';

const { args } = JSON.parse(readFileSync(0, 'utf8'));
const [folder] = args;
const files = readdirSync(folder)
  .sort()
  .map((name) => join(folder, name));
const errors = files.flatMap((file) =>
  readFileSync(file, 'utf8')
    .split('\n')
    .flatMap((text, index) => (text.endsWith(' ') ? [{ file, line: index + 1 }] : [])),
);
process.stdout.write(JSON.stringify({ files: files.length, errors }));
