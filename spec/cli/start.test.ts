// What a verb loads; how long it takes to begin is in the benchmark.

import { spawnSync } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { expect } from 'vitest';
import { Project } from '../support/cli-project.js';
import { verifies } from '../verifies.js';

/** As the compiler made it: there a file is a module. */
const unbundled = fileURLToPath(new URL('../../dist/surfaces/cli/main.js', import.meta.url));
const watcher = fileURLToPath(new URL('fixtures/loaded.mjs', import.meta.url));

/** The files of ours and the packages that a verb loads. */
function loaded(project: Project, args: readonly string[]): string {
  const { PATH = '' } = process.env;
  const { stderr } = spawnSync(process.execPath, ['--import', watcher, unbundled, ...args], {
    cwd: project.directory,
    env: { PATH },
    encoding: 'utf8',
  });
  return stderr;
}

verifies('cli.start', 'a list opens no store', async () => {
  const files = loaded(new Project(), ['list']);
  expect(files).toContain('/dist/loops/registry.js');
  expect(files).not.toMatch(/adapters\/sqlite|libsql|\/host\/|\/kernel\/|adapters\/models|owner\/|ai-sdk/);
});

verifies('cli.start', 'the help loads nothing of what does the work', async () => {
  const files = loaded(new Project(), ['--help']);
  expect(files).toContain('/dist/surfaces/cli/program.js');
  expect(files).not.toMatch(/\/loops\/|adapters|\/host\/|compose|smol-toml|json-p3|re2js/);
});

verifies('cli.start', 'a verb that only reads the store loads no definitions', async () => {
  const project = new Project();
  await project.run(['run', 'echo']);
  for (const verb of ['runs', 'approvals']) {
    const files = loaded(project, [verb]);
    expect(files).toContain('/dist/adapters/sqlite/');
    expect(files).not.toMatch(/adapters\/files|smol-toml|ai-sdk|owner\/listener|cli\/chat/);
  }
});

verifies('cli.start', 'a run loads nothing that only a chat needs', async () => {
  const files = loaded(new Project(), ['run', 'echo']);
  expect(files).toContain('/dist/surfaces/cli/verbs/run.js');
  expect(files).not.toMatch(/cli\/chat|cli\/card|cli\/untrusted-text/);
});

verifies('cli.start', 'neither the library nor a list loads what reaches the network', () => {
  const root = fileURLToPath(new URL('../..', import.meta.url));
  const late = ['http', 'https', 'tls', 'dns/promises'];
  const report = `process.on('exit', () => process.stderr.write(process.moduleLoadList.join()));`;
  const modulesOf = (args: readonly string[]) => {
    const reporting = ['--import', `data:text/javascript,${encodeURIComponent(report)}`];
    return spawnSync(process.execPath, [...reporting, ...args], { cwd: root, encoding: 'utf8' }).stderr.split(',');
  };
  const evaluate = (source: string) => modulesOf(['--input-type=module', '-e', source]);
  const isLate = (module: string) => late.includes(module.replace('NativeModule ', ''));
  expect(evaluate("await import('node:https')").filter(isLate)).not.toEqual([]);
  expect(evaluate("await import('rondo')").filter(isLate)).toEqual([]);
  expect(modulesOf(['lib/surfaces/cli/main.js', 'list', '--json']).filter(isLate)).toEqual([]);
});
