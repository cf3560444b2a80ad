// Settings of a project that nobody trusts: paths that leave it, links in place of files, and what is left outside.

import { mkdirSync, readdirSync, readFileSync, rmSync, statSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect } from './world.mjs';

/** @typedef {import('./world.mjs').World} World */

/** Every file below a directory, with its content. @param {string} directory @returns {Record<string, string>} */
function treeOf(directory) {
  const found = /** @type {Record<string, string>} */ ({});
  for (const name of readdirSync(directory, { recursive: true, encoding: 'utf8' })) {
    const path = join(directory, name);
    const status = statSync(path, { throwIfNoEntry: false });
    found[name] = status?.isFile() ? `${status.mode} ${readFileSync(path, 'utf8')}` : `${status?.mode} directory`;
  }
  return found;
}

/** @param {World} world */
function stage(world) {
  world.define('echo', { tool: { implementation: 'builtin:echo', safety: 'pure' } });
  world.write(join(world.outside, 'precious.txt'), 'do not touch');
  world.write(join(world.outside, 'loops/echo.json'), {
    id: 'echo',
    name: 'e',
    version: '6.6.6',
    kind: 'tool',
    inputSchema: {},
    outputSchema: {},
    tool: { implementation: 'builtin:echo' },
  });
  mkdirSync(join(world.outside, 'empty'));
}

/** @type {Record<string, (world: World) => string>} */
const CONFIGS = {
  'data-above': () => 'data = "../../outside/empty"\n',
  'data-absolute': ({ outside }) => `data = "${outside}/empty"\n`,
  'data-up-and-down': () => 'data = "a/../../../outside/new"\n',
  'data-through-a-link': (world) => {
    symlinkSync(world.outside, world.path('away'));
    return 'data = "away/new"\n';
  },
  'data-through-a-dangling-link': (world) => {
    symlinkSync(join(world.outside, 'later'), world.path('away'));
    return 'data = "away"\n';
  },
  'data-through-two-links': (world) => {
    symlinkSync(world.outside, world.path('b'));
    symlinkSync('b', world.path('a'));
    return 'data = "a/new"\n';
  },
  'store-above': () => 'store = "sqlite:../../outside/x.db"\n',
  'store-absolute': ({ outside }) => `store = "sqlite:${outside}/x.db"\n`,
  'store-slashes': ({ outside }) => `store = "sqlite://${outside}/x.db"\n`,
  'store-through-a-link': (world) => {
    symlinkSync(world.outside, world.path('away'));
    return 'store = "sqlite:away/x.db"\n';
  },
  'store-is-a-link': (world) => {
    symlinkSync(join(world.outside, 'x.db'), world.path('x.db'));
    return 'store = "sqlite:x.db"\n';
  },
  'store-uri': ({ outside }) => `store = "sqlite:file:${outside}/x.db"\n`,
  'store-uri-relative': () => 'store = "sqlite:file:../../outside/x.db?mode=rwc"\n',
  'store-twice': ({ outside }) => `store = "sqlite:sqlite:${outside}/x.db"\n`,
  'store-precious': ({ outside }) => `store = "sqlite:${outside}/precious.txt"\n`,
  'loops-above': () => 'loops = "../../outside/loops"\n',
  'loops-absolute': ({ outside }) => `loops = "${outside}/loops"\n`,
  'loops-through-a-link': (world) => {
    symlinkSync(world.outside, world.path('away'));
    return 'loops = "away/loops"\n';
  },
  'everything-named': ({ outside }) =>
    `data = "${outside}/a"\nstore = "sqlite:${outside}/b.db"\nloops = "${outside}/loops"\n`,
};

/** Links in place of what Rondo makes itself. @type {Record<string, (world: World) => void>} */
const LINKS = {
  'data-directory': (world) => symlinkSync(join(world.outside, 'empty'), world.path('.rondo')),
  'data-directory-dangling': (world) => symlinkSync(join(world.outside, 'later'), world.path('.rondo')),
  'loops-directory': (world) => {
    rmSync(world.path('loops'), { recursive: true });
    symlinkSync(join(world.outside, 'loops'), world.path('loops'));
  },
  ...Object.fromEntries(
    [
      'journal.db',
      'journal.db-wal',
      'journal.db-shm',
      'journal.db.anchor',
      'journal.db.lock',
      'journal.db.owner',
      'blobs',
    ].map((name) => [
      name,
      (/** @type {World} */ world) => {
        mkdirSync(world.path('.rondo'), { mode: 0o700 });
        symlinkSync(join(world.outside, name === 'blobs' ? 'empty' : 'precious.txt'), world.path(`.rondo/${name}`));
      },
    ]),
  ),
  config: (world) => symlinkSync(join(world.outside, 'precious.txt'), world.path('rondo.toml')),
  'config-device': (world) => symlinkSync('/dev/zero', world.path('rondo.toml')),
  'definition-device': (world) => symlinkSync('/dev/zero', world.path('loops/z.json')),
};

/** @param {World} world @param {readonly string[]} args */
async function unharmed(world, args) {
  const before = JSON.stringify(treeOf(world.outside));
  const { stdout } = await world.rondo(args);
  const after = JSON.stringify(treeOf(world.outside));
  expect(before === after, 'nothing outside of the project to change', after);
  expect(!stdout.includes('6.6.6'), 'no definition from outside to be loaded', stdout);
}

/** @returns {import('../authority.mjs').Case[]} */
export const cases = () => [
  ...Object.entries(CONFIGS).flatMap(([name, text]) =>
    [['run', 'echo', '--json'], ['list']].map((args) => ({
      id: `trust.config.${name}.${args[0]}`,
      run: async (/** @type {World} */ world) => {
        stage(world);
        writeFileSync(world.path('rondo.toml'), text(world));
        await unharmed(world, /** @type {string[]} */ (args));
      },
    })),
  ),
  ...Object.entries(LINKS).map(([name, plant]) => ({
    id: `trust.link.${name}`,
    run: async (/** @type {World} */ world) => {
      stage(world);
      plant(world);
      await unharmed(world, ['run', 'echo', '--json']);
    },
  })),
];
