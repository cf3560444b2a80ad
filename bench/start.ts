// The cost of `import 'rondo'` and `rondo list` compared with bare Node, and the number of dependencies.

import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { median } from './measure.js';
import { atMost, section } from './table.js';

const root = fileURLToPath(new URL('../..', import.meta.url));

function milliseconds(args: readonly string[]): number {
  const start = process.hrtime.bigint();
  execFileSync(process.execPath, args, { cwd: root });
  return Number(process.hrtime.bigint() - start) / 1e6;
}

const script = (text: string): readonly string[] => ['--input-type=module', '-e', text];

/** The arguments of Node for `import 'rondo'` in a checkout. */
export const importRondo = script("import 'rondo'");

/** Returns the arguments of Node for `rondo list` of an example, with the command line of a checkout. */
export function listExample(checkout: string): readonly string[] {
  const program = join(checkout, 'lib/surfaces/cli/main.js');
  return [program, 'list', '--json', '--loops', 'examples/03-rag/loops', '--trust', 'examples'];
}

/** Measures the start time. */
export function benchStart(rounds: number): void {
  section('Start');
  const extra: { readonly load: number; readonly list: number }[] = [];
  for (let i = 0; i < rounds; i++) {
    const bare = milliseconds(script('0'));
    extra.push({ load: milliseconds(importRondo) - bare, list: milliseconds(listExample(root)) - bare });
  }
  atMost("import 'rondo' over a bare node", median(extra.map(({ load }) => load)), 60, 'ms');
  atMost('`rondo list` over a bare node', median(extra.map((times) => times.list)), 150, 'ms');
  const { dependencies = {} } = JSON.parse(readFileSync(`${root}/package.json`, 'utf8')) as { dependencies?: object };
  atMost('required runtime dependencies', Object.keys(dependencies).length, 12, 'packages');
}
