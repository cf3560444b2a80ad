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

interface LintOptions {
  /** Configurations in the root of the project; the last one applies. */
  readonly configs?: readonly string[];
  readonly severity?: 'error' | 'warning';
}

/** Returns the rules that each sample breaks, by file: `lint/suspicious/noExplicitAny`. */
export function lint(
  samples: readonly SourceText[],
  { configs = ['biome.json'], severity: expected = 'error' }: LintOptions = {},
): ReadonlyMap<string, readonly string[]> {
  const folder = mkdtempSync(join(tmpdir(), 'rondo-lint-'));
  try {
    for (const config of configs) copyFileSync(absolute(config), join(folder, config));
    for (const { file, text } of samples) {
      mkdirSync(dirname(join(folder, file)), { recursive: true });
      writeFileSync(join(folder, file), text);
    }
    const args = [absolute('node_modules/@biomejs/biome/bin/biome'), 'lint', '--reporter=json'];
    args.push(`--config-path=${configs.at(-1)}`);
    const { stdout } = spawnSync(process.execPath, args, { cwd: folder, encoding: 'utf8' });
    const { diagnostics }: { diagnostics: readonly Diagnostic[] } = JSON.parse(stdout);
    const found = diagnostics.filter(({ severity }) => severity === expected);
    return new Map(
      samples.map(({ file }) => [
        file,
        found.filter(({ location }) => location.path === file).map(({ category }) => category),
      ]),
    );
  } finally {
    rmSync(folder, { recursive: true });
  }
}
