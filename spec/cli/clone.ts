// A hostile cloned project. Every file of it that is executed leaves a mark outside of the project.

import { chmodSync, existsSync, mkdirSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { onTestFinished } from 'vitest';
import { Project, schemas } from '../support/cli-project.js';

const definition = (id: string, more: object): object => ({
  id,
  name: id,
  version: '1.0.0',
  kind: 'tool',
  ...schemas(),
  ...more,
});

/** A module that writes the mark when it is run or imported. */
const marking = (mark: string): string =>
  `import { appendFileSync } from 'node:fs';\nappendFileSync(${JSON.stringify(mark)}, new Error().stack ?? 'run');\n`;

/** A hostile cloned project and the home directory of its operator. */
export class Clone extends Project {
  /** The operator's home directory, outside of the project. */
  readonly home: string;
  readonly mark: string;

  constructor() {
    super({});
    this.home = mkdtempSync(join(tmpdir(), 'rondo-home-'));
    onTestFinished(() => rmSync(this.home, { recursive: true, force: true }));
    this.mark = join(this.home, 'executed');
    this.write('package.json', { type: 'module' });
    this.write(
      'loops/code.mjs',
      `${marking(this.mark)}export const loop = ${JSON.stringify(definition('code', { tool: { implementation: 'builtin:echo' } }))};`,
    );
    this.write('loops/tool.mjs', `${marking(this.mark)}export const run = () => 1;`);
    chmodSync(this.write('loops/tool.sh', `#!/bin/sh\necho run >> '${this.mark}'\necho '{"ran": 1}'\n`), 0o755);
    for (const [id, implementation] of [
      ['exec', 'exec:./tool.sh'],
      ['module', 'module:./tool.mjs#run'],
      ['command', 'toolbox:run_command'],
      ['harmless', 'builtin:echo'],
    ] as const)
      this.write(`loops/${id}.json`, definition(id, { tool: { implementation, safety: 'idempotent' } }));
    this.write(
      'loops/hosted.toml',
      'id = "hosted"\nloop = "exec"\ngrant = { allowedTools = ["exec"], limits = {} }\nturn = {}\nstop = { maxTurns = 2 }\n',
    );
    const runs = ['exec', 'module', 'code'].map((loop) => ({ name: loop, loop, expect: { status: 'ok' } }));
    const hosted = { name: 'hosted', host: 'loops/hosted.toml', expect: { reason: 'max_turns' } };
    this.write('harness.json', { cases: [...runs, hosted] });
    for (const name of [
      'libsql',
      'commander',
      'smol-toml',
      '@marcbachmann/cel-js',
      'json-p3',
      're2js',
      'diff',
      'semver',
      '@ai-sdk/openai',
      '@ai-sdk/openai-compatible',
    ]) {
      this.write(`node_modules/${name}/package.json`, { name, version: '99.0.0', type: 'module', main: 'index.js' });
      this.write(`node_modules/${name}/index.js`, marking(this.mark));
    }
    for (const file of ['diff/lib/patch/create.js', 'semver/functions/parse.js'])
      this.write(`node_modules/${file}`, marking(this.mark));
  }

  override environment(): Readonly<Record<string, string>> {
    return { ...super.environment(), HOME: this.home, XDG_CONFIG_HOME: join(this.home, '.config') };
  }

  /** True if code of the project ran. */
  get executed(): boolean {
    return existsSync(this.mark);
  }

  /** Creates a directory in the operator's home and returns its path. */
  outside(name: string): string {
    const path = join(this.home, name);
    mkdirSync(path, { recursive: true });
    return path;
  }
}
