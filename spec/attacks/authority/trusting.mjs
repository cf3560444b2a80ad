// How the operator names a directory: which spellings trust it, which do not, and what becomes of one that is replaced.

import { existsSync, mkdirSync, renameSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect } from './world.mjs';

/** @typedef {import('./world.mjs').World} World */

/** @param {World} world */
function stage(world) {
  world.write('loops/tool.sh', world.shell('A'), 0o755);
  world.define('pay', { tool: { implementation: 'exec:./tool.sh' } });
}

/** How it is spelt, and whether that is trust in the project. @type {Record<string, [spelling: (world: World) => string, trusted: boolean, prepare?: (world: World) => void]>} */
const SPELLINGS = {
  exact: [({ project }) => project, true],
  slash: [({ project }) => `${project}/`, true],
  'slash-dot': [({ project }) => `${project}/.`, true],
  'double-slash': [({ project }) => project.replace('/work/', '//work//'), true],
  'up-and-down': [({ project }) => `${project}/../project`, true],
  dot: [() => '.', true],
  'dot-slash': [() => './', true],
  above: [() => '..', true],
  loops: [() => 'loops', true],
  'link-to-it': [
    ({ base }) => join(base, 'link'),
    true,
    ({ base, project }) => symlinkSync(project, join(base, 'link')),
  ],
  'link-to-above': [
    ({ base }) => join(base, 'link'),
    true,
    ({ base }) => symlinkSync(join(base, 'work'), join(base, 'link')),
  ],
  sibling: [({ project }) => `${project}2`, false, ({ project }) => mkdirSync(`${project}2`)],
  'shorter-sibling': [({ base }) => join(base, 'work/proj'), false, ({ base }) => mkdirSync(join(base, 'work/proj'))],
  'below-loops': [() => 'loops/sub', false, (world) => mkdirSync(world.path('loops/sub'))],
  'other-directory-of-it': [() => 'docs', false, (world) => mkdirSync(world.path('docs'))],
  'case-differs': [
    ({ base }) => join(base, 'work/PROJECT'),
    false,
    ({ base }) => mkdirSync(join(base, 'work/PROJECT')),
  ],
  'link-away': [
    ({ base }) => join(base, 'link'),
    false,
    ({ base, outside }) => symlinkSync(outside, join(base, 'link')),
  ],
  'link-below-it-away': [() => 'away', false, (world) => symlinkSync(world.outside, world.path('away'))],
  absent: [({ base }) => join(base, 'nowhere'), false],
  'absent-below-it': [({ project }) => `${project}/nowhere/..`, true],
  'dangling-link': [({ base }) => join(base, 'link'), false, ({ base }) => symlinkSync('nowhere', join(base, 'link'))],
  blank: [() => ' ', false],
  tilde: [() => '~', false],
  star: [({ base }) => join(base, 'work/*'), false],
  'file-url': [({ project }) => `file://${project}`, false],
  quoted: [({ project }) => `"${project}"`, false],
  'line-end': [({ project }) => `${project}\n`, false],
  comma: [({ project, base }) => `${base}/outside,${project}`, false],
  'decomposed-name': [
    ({ base }) => join(base, 'work/pro\u0301ject'),
    false,
    ({ base }) => mkdirSync(join(base, 'work/pro\u0301ject')),
  ],
};

/** @returns {import('../authority.mjs').Case[]} */
function spellings() {
  return Object.entries(SPELLINGS).flatMap(([name, [spell, trusted, prepare]]) =>
    ['flag', 'variable', 'remembered'].map((how) => ({
      id: `trust.spelling.${name}.${how}`,
      run: async (/** @type {World} */ world) => {
        stage(world);
        prepare?.(world);
        const spelling = spell(world);
        if (how === 'remembered') await world.rondo(['trust', spelling]);
        const args = ['run', 'pay', '--input', '{}', ...(how === 'flag' ? ['--trust', spelling] : [])];
        await world.rondo(args, how === 'variable' ? { trust: spelling } : {});
        const ran = world.count('A');
        expect(ran === (trusted ? 1 : 0), trusted ? 'it to run' : 'nothing to run', { spelling, ran });
      },
    })),
  );
}

/** Lists in RONDO_TRUST. @type {Record<string, [list: (world: World) => string, trusted: boolean]>} */
const LISTS = {
  empty: [() => '', false],
  separators: [() => ':::', false],
  'last-of-two': [({ outside, project }) => `${outside}:${project}`, true],
  'empty-parts': [({ project }) => `::${project}::`, true],
  'one-is-absent': [({ project }) => `/nowhere/at/all:${project}`, false],
  'relative-parts': [() => 'loops:docs', false],
};

/** @returns {import('../authority.mjs').Case[]} */
function lists() {
  return Object.entries(LISTS).map(([name, [list, trusted]]) => ({
    id: `trust.list.${name}`,
    run: async (/** @type {World} */ world) => {
      stage(world);
      await world.rondo(['run', 'pay', '--input', '{}'], { trust: list(world) });
      expect(world.count('A') === (trusted ? 1 : 0), trusted ? 'it to run' : 'nothing to run', world.executed());
    },
  }));
}

/** What must never be remembered. @type {Record<string, (world: World) => string>} */
const TOO_MUCH = {
  root: () => '/',
  'root-dots': () => '/tmp/../',
  home: ({ home }) => home,
  'home-slash': ({ home }) => `${home}/`,
  'above-home': ({ base }) => base,
  'link-to-home': ({ base, home }) => {
    symlinkSync(home, join(base, 'link'));
    return join(base, 'link');
  },
  'link-to-root': ({ base }) => {
    symlinkSync('/', join(base, 'link'));
    return join(base, 'link');
  },
};

/** @returns {import('../authority.mjs').Case[]} */
function tooMuch() {
  return Object.entries(TOO_MUCH).map(([name, place]) => ({
    id: `trust.too-much.${name}`,
    run: async (/** @type {World} */ world) => {
      stage(world);
      const { code } = await world.rondo(['trust', place(world)]);
      await world.rondo(['run', 'pay', '--input', '{}']);
      expect(code === 64 && world.count('A') === 0, 'trust in everything to be refused', {
        code,
        ran: world.executed(),
      });
    },
  }));
}

/** @returns {import('../authority.mjs').Case[]} */
function takenBack() {
  return [
    {
      id: 'trust.changed.taken-back',
      run: async (world) => {
        stage(world);
        await world.rondo(['trust', '.']);
        await world.rondo(['trust', '.', '--remove']);
        await world.rondo(['run', 'pay', '--input', '{}']);
        world.expectNothing('nothing to run after trust was taken back');
      },
    },
    {
      id: 'trust.changed.taken-back-by-a-link',
      run: async (world) => {
        stage(world);
        symlinkSync(world.project, join(world.base, 'link'));
        await world.rondo(['trust', join(world.base, 'link')]);
        await world.rondo(['trust', join(world.base, 'link'), '--remove']);
        await world.rondo(['run', 'pay', '--input', '{}']);
        world.expectNothing('nothing to run after trust was taken back');
      },
    },
  ];
}

/** @returns {import('../authority.mjs').Case[]} */
function replaced() {
  return [
    {
      id: 'trust.changed.the-link-leads-elsewhere',
      run: async (world) => {
        stage(world);
        const link = join(world.base, 'link');
        mkdirSync(join(world.base, 'good'));
        symlinkSync(join(world.base, 'good'), link);
        await world.rondo(['trust', link]);
        rmSync(link);
        symlinkSync(world.project, link);
        await world.rondo(['run', 'pay', '--input', '{}']);
        world.expectNothing('trust to stay with the directory that was trusted');
      },
    },
    {
      id: 'trust.changed.replaced-by-a-link-to-a-clone',
      run: async (world) => {
        stage(world);
        const good = join(world.base, 'good');
        mkdirSync(good);
        await world.rondo(['trust', good]);
        rmSync(good, { recursive: true });
        symlinkSync(world.project, good);
        await world.rondo(['run', 'pay', '--input', '{}']);
        // A name that leads elsewhere now: `rondo trust` shows the path that was written, and a user with write access there changed it.
        const listed = await world.json(['trust']);
        expect(world.count('A') === 0 || listed.directories.length > 0, 'trust to be shown', listed);
      },
    },
    {
      id: 'trust.changed.moved-away',
      run: async (world) => {
        stage(world);
        await world.rondo(['trust', '.']);
        renameSync(world.project, `${world.project}-moved`);
        await world.rondo(['run', 'pay', '--input', '{}'], { cwd: `${world.project}-moved` });
        world.expectNothing('trust not to follow a directory that was moved');
      },
    },
    ...['run', 'list', 'check'].map((verb) => ({
      id: `trust.changed.a-subdirectory-leads-out.${verb}`,
      run: async (/** @type {World} */ world) => {
        writeFileSync(join(world.outside, 'code.mjs'), world.module('code'));
        writeFileSync(join(world.outside, 'tool.sh'), world.shell('B'), { mode: 0o755 });
        rmSync(world.path('loops'), { recursive: true });
        symlinkSync(world.outside, world.path('loops'));
        world.define('pay', { tool: { implementation: 'exec:./tool.sh' } });
        expect(existsSync(join(world.outside, 'pay.json')), 'the definition outside', false);
        await world.rondo(verb === 'run' ? ['run', 'pay', '--input', '{}'] : [verb], { trust: true });
        world.expectNothing('trust in the project not to cover what a link of it leads to');
      },
    })),
  ];
}

/** Names of directories that a file of the operator must be able to hold. */
const NAMES = {
  quote: 'a"b',
  apostrophe: "a'b",
  backslash: 'a\\b',
  'line-end': 'a\nb',
  tab: 'a\tb',
  bracket: 'a"]\n[send]\nMY_TOKEN = ["evil.example"]\n#',
  escape: 'a\u001bb',
  delete: 'a\u007fb',
  'next-line': 'a\u0085b',
  'right-to-left': 'a\u202eb',
  'high-plane': 'a\u{1f600}b',
};

/** A directory is trusted, runs, and is taken back; the file stays one that can be read. @returns {import('../authority.mjs').Case[]} */
function named() {
  return Object.entries(NAMES).map(([name, directory]) => ({
    id: `trust.name.${name}`,
    run: async (/** @type {World} */ world) => {
      stage(world);
      const place = join(world.base, directory);
      renameSync(world.project, place);
      await world.rondo(['trust', '.'], { cwd: place });
      const { code, stderr } = await world.rondo(['run', 'pay', '--input', '{}'], { cwd: place });
      expect(code === 0 && world.count('A') === 1, 'it to be trusted', stderr);
      const { send, directories } = await world.json(['trust', '.', '--remove'], { cwd: place });
      expect(directories.length === 0 && Object.keys(send).length === 0, 'nothing else to be remembered', {
        send,
        directories,
      });
    },
  }));
}

export const cases = () => [...spellings(), ...lists(), ...named(), ...tooMuch(), ...takenBack(), ...replaced()];
