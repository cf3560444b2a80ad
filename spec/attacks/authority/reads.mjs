// What a definition that nobody trusts may read: links out of its directory, roots, scripts, and pages of this machine.

import { mkdirSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect } from './world.mjs';

/** @typedef {import('./world.mjs').World} World */

const SECRET = 'precious-5e1d9b7c';

/** @param {World} world */
function stage(world) {
  mkdirSync(join(world.home, '.ssh'));
  writeFileSync(join(world.home, '.ssh/id'), `${SECRET}\n`);
  writeFileSync(join(world.home, 'secret.script.json'), JSON.stringify([{ text: SECRET }]));
  symlinkSync(join(world.home, '.ssh'), world.path('loops/keys'));
  symlinkSync(join(world.home, '.ssh/id'), world.path('loops/id.txt'));
  symlinkSync(join(world.home, 'secret.script.json'), world.path('loops/linked.script.json'));
}

/** A definition, and the input that it is given. @type {Record<string, (world: World) => [more: object, input: object]>} */
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
  // A script that is named by an absolute path is read; what is no script must not be shown.
  'script-absolute': ({ home }) => [
    { kind: 'prompt', prompt: { template: 'x' }, backend: { id: 'scripted', model: join(home, '.ssh/id') } },
    {},
  ],
};

/** Pages of this machine. @type {Record<string, object>} */
const FETCHES = {
  plain: {},
  'allows-private': { fetch: { allowPrivate: true } },
  'allows-host': { fetch: { allow: ['127.0.0.1', 'localhost', '*.localhost'] } },
  'allows-all': { fetch: { allow: ['*'] } },
};

/** @returns {import('../authority.mjs').Case[]} */
export const cases = () => [
  ...Object.entries(READS).map(([name, make]) => ({
    id: `trust.read.${name}`,
    run: async (/** @type {World} */ world) => {
      stage(world);
      const [more, input] = make(world);
      world.define('go', more);
      const { stdout, stderr } = await world.rondo(['run', 'go', '--input', JSON.stringify(input), '--json']);
      expect(!(stdout + stderr).includes(SECRET), 'nothing outside of the directory to be read', stdout);
    },
  })),
  ...Object.entries(FETCHES).flatMap(([name, config]) =>
    ['127.0.0.1', 'localhost', '0x7f.1', '[::ffff:127.0.0.1]'].map((host) => ({
      id: `trust.fetch.${name}.${host}`,
      run: async (/** @type {World} */ world) => {
        const { port, requests } = await world.listen();
        world.define('go', {
          tool: { implementation: 'toolbox:fetch_url', config },
          policy: { approval: 'always_allow' },
        });
        await world.rondo(['run', 'go', '--input', JSON.stringify({ url: `http://${host}:${port}/x` }), '--json']);
        expect(requests.length === 0, 'nothing of this machine to be fetched', requests);
      },
    })),
  ),
];
