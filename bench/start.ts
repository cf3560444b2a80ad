/** What `import 'rondo'` costs over a bare node, and what the package needs. */
import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { median } from './measure.js';
import { atMost, section } from './table.js';

const root = fileURLToPath(new URL('../..', import.meta.url));

function milliseconds(script: string): number {
  const start = process.hrtime.bigint();
  execFileSync(process.execPath, ['--input-type=module', '-e', script], { cwd: root });
  return Number(process.hrtime.bigint() - start) / 1e6;
}

export function benchStart(rounds: number): void {
  section('Start');
  const extra: number[] = [];
  for (let i = 0; i < rounds; i++) {
    const bare = milliseconds('0');
    extra.push(milliseconds("import 'rondo'") - bare);
  }
  atMost("import 'rondo' over a bare node", median(extra), 60, 'ms');
  const { dependencies = {} } = JSON.parse(readFileSync(`${root}/package.json`, 'utf8')) as { dependencies?: object };
  atMost('required runtime dependencies', Object.keys(dependencies).length, 10, 'packages');
}
