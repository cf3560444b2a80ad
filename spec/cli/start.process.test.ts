// The modules that a verb loads. The benchmark measures the start time.

import { spawnSync } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { expect } from 'vitest';
import { Project } from '../support/cli-project.js';
import { verifies } from '../verifies.js';

/** The unbundled build, in which each module is a file. */
const unbundled = fileURLToPath(new URL('../../dist/surfaces/cli/main.js', import.meta.url));
const loadLogger = fileURLToPath(new URL('fixtures/loaded.mjs', import.meta.url));

/** Returns the URLs of all modules that a verb loads. */
function loadedModules(project: Project, args: readonly string[]): string {
  const { PATH = '' } = process.env;
  const { stderr } = spawnSync(process.execPath, ['--import', loadLogger, unbundled, ...args], {
    cwd: project.directory,
    env: { PATH },
    encoding: 'utf8',
  });
  return stderr;
}

verifies('cli.start', 'list loads no store', async () => {
  const files = loadedModules(new Project(), ['list']);
  expect(files).toContain('/dist/loops/registry.js');
  expect(files).not.toMatch(/adapters\/sqlite|libsql|\/host\/|\/kernel\/|adapters\/models|owner\/|ai-sdk/);
});

verifies('cli.start', 'the help loads no loops, adapters or host', async () => {
  const files = loadedModules(new Project(), ['--help']);
  expect(files).toContain('/dist/surfaces/cli/program.js');
  expect(files).not.toMatch(/\/loops\/|adapters|\/host\/|compose|smol-toml|json-p3|re2js|cel-js/);
});

verifies('cli.start', 'a verb that only reads the store loads no definitions', async () => {
  const project = new Project();
  await project.run(['run', 'echo']);
  for (const verb of ['runs', 'approvals']) {
    const files = loadedModules(project, [verb]);
    expect(files).toContain('/dist/adapters/sqlite/');
    expect(files).not.toMatch(/adapters\/files|smol-toml|ai-sdk|owner\/listener|cli\/chat/);
  }
});

verifies('cli.start', 'run loads no module that only chat needs', async () => {
  const files = loadedModules(new Project(), ['run', 'echo']);
  expect(files).toContain('/dist/surfaces/cli/verbs/run.js');
  expect(files).not.toMatch(/cli\/chat|cli\/card|cli\/untrusted-text/);
});

verifies('cli.start', 'neither the library nor list loads network modules', () => {
  const root = fileURLToPath(new URL('../..', import.meta.url));
  const networkModules = ['http', 'https', 'tls', 'dns/promises'];
  const report = `process.on('exit', () => process.stderr.write(process.moduleLoadList.join()));`;
  const modulesOf = (args: readonly string[]) => {
    const reporting = ['--import', `data:text/javascript,${encodeURIComponent(report)}`];
    return spawnSync(process.execPath, [...reporting, ...args], { cwd: root, encoding: 'utf8' }).stderr.split(',');
  };
  const evaluate = (source: string) => modulesOf(['--input-type=module', '-e', source]);
  const isNetworkModule = (module: string) => networkModules.includes(module.replace('NativeModule ', ''));
  expect(evaluate("await import('node:https')").filter(isNetworkModule)).not.toEqual([]);
  expect(evaluate("await import('rondo')").filter(isNetworkModule)).toEqual([]);
  expect(modulesOf(['lib/surfaces/cli/main.js', 'list', '--json']).filter(isNetworkModule)).toEqual([]);
});
