// What an untrusted definition may read: links out of its directory, roots, scripts, and servers on private hosts.

import { mkdirSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect } from './fixture.mjs';

/** @typedef {import('./fixture.mjs').AuthorityFixture} AuthorityFixture */

const SECRET = 'precious-5e1d9b7c';

/** Creates secret files in the home directory and links to them in the project. @param {AuthorityFixture} fixture */
function createSecretFiles(fixture) {
  mkdirSync(join(fixture.home, '.ssh'));
  writeFileSync(join(fixture.home, '.ssh/id'), `${SECRET}\n`);
  writeFileSync(join(fixture.home, 'secret.script.json'), JSON.stringify([{ text: SECRET }]));
  symlinkSync(join(fixture.home, '.ssh'), fixture.path('loops/keys'));
  symlinkSync(join(fixture.home, '.ssh/id'), fixture.path('loops/id.txt'));
  symlinkSync(join(fixture.home, 'secret.script.json'), fixture.path('loops/linked.script.json'));
}

/**
 * Definitions and their inputs.
 * @type {Record<string, (fixture: AuthorityFixture) => [definition: object, input: object]>}
 */
const READS = {
  'view-link': () => [{ tool: { implementation: 'toolbox:view_file' } }, { path: 'id.txt' }],
  'view-through-link': () => [{ tool: { implementation: 'toolbox:view_file' } }, { path: 'keys/id' }],
  'view-above': () => [{ tool: { implementation: 'toolbox:view_file' } }, { path: '../../../home/.ssh/id' }],
  'view-absolute': ({ home }) => [{ tool: { implementation: 'toolbox:view_file' } }, { path: join(home, '.ssh/id') }],
  'view-proc': ({ home }) => [
    { tool: { implementation: 'toolbox:view_file' } },
    { path: `/proc/self/root${home}/.ssh/id` },
  ],
  'view-root-above': () => [
    { tool: { implementation: 'toolbox:view_file', config: { roots: ['../../..'] } } },
    { path: 'home/.ssh/id' },
  ],
  'view-root-absolute': ({ home }) => [
    { tool: { implementation: 'toolbox:view_file', config: { roots: [home] } } },
    { path: '.ssh/id' },
  ],
  'view-root-link': () => [
    { tool: { implementation: 'toolbox:view_file', config: { roots: ['keys'] } } },
    { path: 'id' },
  ],
  'view-root-through-link': () => [
    { tool: { implementation: 'toolbox:view_file', config: { roots: ['keys/../keys'] } } },
    { path: 'id' },
  ],
  'search-link': () => [{ tool: { implementation: 'toolbox:search_files' } }, { query: 'precious' }],
  'search-root-link': () => [
    { tool: { implementation: 'toolbox:search_files', config: { roots: ['.', 'keys'] } } },
    { query: 'precious' },
  ],
  'search-hidden': () => [
    { tool: { implementation: 'toolbox:search_files', config: { roots: ['keys'] } } },
    { query: 'precious', hidden: true },
  ],
  'list-link': () => [
    { tool: { implementation: 'toolbox:list_files', config: { roots: ['keys'] } } },
    { hidden: true, depth: 5 },
  ],
  'script-link': () => [
    { kind: 'prompt', prompt: { template: 'x' }, backend: { id: 'scripted', model: 'linked.script.json' } },
    {},
  ],
  'script-above': () => [
    {
      kind: 'prompt',
      prompt: { template: 'x' },
      backend: { id: 'scripted', model: '../../../home/secret.script.json' },
    },
    {},
  ],
  // A script may have an absolute path; the content of a file that is not a script must not be shown.
  'script-absolute': ({ home }) => [
    { kind: 'prompt', prompt: { template: 'x' }, backend: { id: 'scripted', model: join(home, '.ssh/id') } },
    {},
  ],
};

/** Configurations of `fetch_url` that request private hosts. @type {Record<string, object>} */
const FETCHES = {
  plain: {},
  'allows-private': { fetch: { allowPrivate: true } },
  'allows-host': { fetch: { allow: ['127.0.0.1', 'localhost', '*.localhost'] } },
  'allows-all': { fetch: { allow: ['*'] } },
};

/** @returns {import('../runner.mjs').Case[]} */
export const cases = () => [
  ...Object.entries(READS).map(([name, make]) => ({
    id: `trust.read.${name}`,
    run: async (/** @type {AuthorityFixture} */ fixture) => {
      createSecretFiles(fixture);
      const [definition, input] = make(fixture);
      fixture.define('go', definition);
      const { stdout, stderr } = await fixture.rondo(['run', 'go', '--input', JSON.stringify(input), '--json']);
      expect(!(stdout + stderr).includes(SECRET), 'no file outside of the directory to be read', stdout);
    },
  })),
  ...Object.entries(FETCHES).flatMap(([name, config]) =>
    ['127.0.0.1', 'localhost', '0x7f.1', '[::ffff:127.0.0.1]'].map((host) => ({
      id: `trust.fetch.${name}.${host}`,
      run: async (/** @type {AuthorityFixture} */ fixture) => {
        const { port, requests } = await fixture.listen();
        fixture.define('go', {
          tool: { implementation: 'toolbox:fetch_url', config },
          policy: { approval: 'always_allow' },
        });
        await fixture.rondo(['run', 'go', '--input', JSON.stringify({ url: `http://${host}:${port}/x` }), '--json']);
        expect(requests.length === 0, 'no request to a private host', requests);
      },
    })),
  ),
];
