// The next Node release line, from npm's platform package: no version manager, no install script. The version is the
// newest one that is published for both Linux architectures. As a program, it runs `npm test`, or another tier, on it.

import { execFileSync, spawnSync } from 'node:child_process';
import { existsSync } from 'node:fs';
import { delimiter, dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';

const version = '24.21.0';
const name = `node-${process.platform}-${process.arch}`;
const root = fileURLToPath(new URL('..', import.meta.url));
const cache = join(root, 'node_modules', '.cache', 'node24');
const node = join(cache, 'node_modules', name, 'bin', 'node');

function isInstalled() {
  return existsSync(node) && execFileSync(node, ['--version'], { encoding: 'utf8' }).trim() === `v${version}`;
}

function install() {
  console.log(`installing ${name}@${version}`);
  const flags = ['--no-save', '--ignore-scripts', '--no-audit', '--no-fund', '--loglevel=error'];
  const { status } = spawnSync('npm', ['install', '--prefix', cache, ...flags, `${name}@${version}`], {
    stdio: 'inherit',
  });
  return status === 0 && isInstalled();
}

/** Returns the path of the newer Node and the environment to run it in. Installs it if needed; throws if that fails. */
export function newerNode() {
  if (!isInstalled() && !install())
    throw new Error(
      `Could not install ${name}@${version}. Is the registry reachable, and does it have Node for this platform?`,
    );
  const PATH = [dirname(node), process.env.PATH].join(delimiter);
  return { node, env: { ...process.env, RONDO_TEST_LANE: `node-${version.split('.')[0]}`, PATH } };
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const { node: executable, env } = newerNode();
  const args = [join(root, 'scripts', 'run-tests.mjs'), ...process.argv.slice(2)];
  process.exitCode = spawnSync(executable, args, { cwd: root, env, stdio: 'inherit' }).status ?? 1;
}
