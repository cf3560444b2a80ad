// Runs the linter with the project's configuration over samples, outside of the project.

import { spawnSync } from 'node:child_process';
import { copyFileSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { absolute, type SourceText } from './tree.js';

interface Diagnostic {
  readonly category: string;
  readonly severity: string;
  readonly location: { readonly path: string };
}

/** Returns the rules that each sample breaks, by file: `lint/suspicious/noExplicitAny`. */
export function lint(samples: readonly SourceText[]): ReadonlyMap<string, readonly string[]> {
  const folder = mkdtempSync(join(tmpdir(), 'rondo-lint-'));
  try {
    copyFileSync(absolute('biome.json'), join(folder, 'biome.json'));
    for (const { file, text } of samples) {
      mkdirSync(dirname(join(folder, file)), { recursive: true });
      writeFileSync(join(folder, file), text);
    }
    const args = [absolute('node_modules/@biomejs/biome/bin/biome'), 'lint', '--reporter=json'];
    const { stdout } = spawnSync(process.execPath, args, { cwd: folder, encoding: 'utf8' });
    const { diagnostics }: { diagnostics: readonly Diagnostic[] } = JSON.parse(stdout);
    const errors = diagnostics.filter(({ severity }) => severity === 'error');
    return new Map(
      samples.map(({ file }) => [
        file,
        errors.filter(({ location }) => location.path === file).map(({ category }) => category),
      ]),
    );
  } finally {
    rmSync(folder, { recursive: true });
  }
}
