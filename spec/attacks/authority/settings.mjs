// Settings of an untrusted project: paths and links that lead outside of it.

import { mkdirSync, readdirSync, readFileSync, rmSync, statSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect } from './fixture.mjs';

/** @typedef {import('./fixture.mjs').AuthorityFixture} AuthorityFixture */

/**
 * Returns the mode and content of all files below a directory.
 * @param {string} directory
 * @returns {Record<string, string>}
 */
function readTree(directory) {
  const tree = /** @type {Record<string, string>} */ ({});
  for (const name of readdirSync(directory, { recursive: true, encoding: 'utf8' })) {
    const path = join(directory, name);
    const status = statSync(path, { throwIfNoEntry: false });
    tree[name] = status?.isFile() ? `${status.mode} ${readFileSync(path, 'utf8')}` : `${status?.mode} directory`;
  }
  return tree;
}

/** Creates a loop in the project, and files outside of it. @param {AuthorityFixture} fixture */
function createFiles(fixture) {
  fixture.define('echo', { tool: { implementation: 'builtin:echo', safety: 'pure' } });
  fixture.write(join(fixture.outside, 'precious.txt'), 'do not touch');
  fixture.write(join(fixture.outside, 'loops/echo.json'), {
    id: 'echo',
    name: 'e',
    version: '6.6.6',
    kind: 'tool',
    inputSchema: {},
    outputSchema: {},
    tool: { implementation: 'builtin:echo' },
  });
  mkdirSync(join(fixture.outside, 'empty'));
}

/** Contents of rondo.toml. @type {Record<string, (fixture: AuthorityFixture) => string>} */
const CONFIGS = {
  'data-above': () => 'data = "../../outside/empty"\n',
  'data-absolute': ({ outside }) => `data = "${outside}/empty"\n`,
  'data-up-and-down': () => 'data = "a/../../../outside/new"\n',
  'data-through-a-link': (fixture) => {
    symlinkSync(fixture.outside, fixture.path('away'));
    return 'data = "away/new"\n';
  },
  'data-through-a-dangling-link': (fixture) => {
    symlinkSync(join(fixture.outside, 'later'), fixture.path('away'));
    return 'data = "away"\n';
  },
  'data-through-two-links': (fixture) => {
    symlinkSync(fixture.outside, fixture.path('b'));
    symlinkSync('b', fixture.path('a'));
    return 'data = "a/new"\n';
  },
  'store-above': () => 'store = "sqlite:../../outside/x.db"\n',
  'store-absolute': ({ outside }) => `store = "sqlite:${outside}/x.db"\n`,
  'store-slashes': ({ outside }) => `store = "sqlite://${outside}/x.db"\n`,
  'store-through-a-link': (fixture) => {
    symlinkSync(fixture.outside, fixture.path('away'));
    return 'store = "sqlite:away/x.db"\n';
  },
  'store-is-a-link': (fixture) => {
    symlinkSync(join(fixture.outside, 'x.db'), fixture.path('x.db'));
    return 'store = "sqlite:x.db"\n';
  },
  'store-uri': ({ outside }) => `store = "sqlite:file:${outside}/x.db"\n`,
  'store-uri-relative': () => 'store = "sqlite:file:../../outside/x.db?mode=rwc"\n',
  'store-twice': ({ outside }) => `store = "sqlite:sqlite:${outside}/x.db"\n`,
  'store-precious': ({ outside }) => `store = "sqlite:${outside}/precious.txt"\n`,
  'loops-above': () => 'loops = "../../outside/loops"\n',
  'loops-absolute': ({ outside }) => `loops = "${outside}/loops"\n`,
  'loops-through-a-link': (fixture) => {
    symlinkSync(fixture.outside, fixture.path('away'));
    return 'loops = "away/loops"\n';
  },
  'everything-named': ({ outside }) =>
    `data = "${outside}/a"\nstore = "sqlite:${outside}/b.db"\nloops = "${outside}/loops"\n`,
};

/** Links in place of files that Rondo creates or reads. @type {Record<string, (fixture: AuthorityFixture) => void>} */
const LINKS = {
  'data-directory': (fixture) => symlinkSync(join(fixture.outside, 'empty'), fixture.path('.rondo')),
  'data-directory-dangling': (fixture) => symlinkSync(join(fixture.outside, 'later'), fixture.path('.rondo')),
  'loops-directory': (fixture) => {
    rmSync(fixture.path('loops'), { recursive: true });
    symlinkSync(join(fixture.outside, 'loops'), fixture.path('loops'));
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
      (/** @type {AuthorityFixture} */ fixture) => {
        mkdirSync(fixture.path('.rondo'), { mode: 0o700 });
        symlinkSync(join(fixture.outside, name === 'blobs' ? 'empty' : 'precious.txt'), fixture.path(`.rondo/${name}`));
      },
    ]),
  ),
  config: (fixture) => symlinkSync(join(fixture.outside, 'precious.txt'), fixture.path('rondo.toml')),
  'config-device': (fixture) => symlinkSync('/dev/zero', fixture.path('rondo.toml')),
  'definition-device': (fixture) => symlinkSync('/dev/zero', fixture.path('loops/z.json')),
};

/**
 * Runs a verb: nothing outside of the project changes or is loaded.
 * @param {AuthorityFixture} fixture
 * @param {readonly string[]} args
 */
async function assertOutsideUnchanged(fixture, args) {
  const before = JSON.stringify(readTree(fixture.outside));
  const { stdout } = await fixture.rondo(args);
  const after = JSON.stringify(readTree(fixture.outside));
  expect(before === after, 'no file outside of the project to change', after);
  expect(!stdout.includes('6.6.6'), 'no definition from outside to be loaded', stdout);
}

/** @returns {import('../runner.mjs').Case[]} */
export const cases = () => [
  ...Object.entries(CONFIGS).flatMap(([name, text]) =>
    [['run', 'echo', '--json'], ['list']].map((args) => ({
      id: `trust.config.${name}.${args[0]}`,
      run: async (/** @type {AuthorityFixture} */ fixture) => {
        createFiles(fixture);
        writeFileSync(fixture.path('rondo.toml'), text(fixture));
        await assertOutsideUnchanged(fixture, /** @type {string[]} */ (args));
      },
    })),
  ),
  ...Object.entries(LINKS).map(([name, plant]) => ({
    id: `trust.link.${name}`,
    run: async (/** @type {AuthorityFixture} */ fixture) => {
      createFiles(fixture);
      plant(fixture);
      await assertOutsideUnchanged(fixture, ['run', 'echo', '--json']);
    },
  })),
];
