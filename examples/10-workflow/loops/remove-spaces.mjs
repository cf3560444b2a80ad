#!/usr/bin/env node
// Removes the spaces at the ends of lines: `{ verb, args: [file, …] }` on stdin, `{ fixed }` on stdout.

import { readFileSync, writeFileSync } from 'node:fs';

const { args } = JSON.parse(readFileSync(0, 'utf8'));
const [file] = args;
writeFileSync(file, readFileSync(file, 'utf8').replace(/ +$/gm, ''));
process.stdout.write(JSON.stringify({ fixed: file }));
