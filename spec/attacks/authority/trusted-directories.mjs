// How the operator names a trusted directory: spellings, refused directories, revoked trust and replaced directories.

import { existsSync, mkdirSync, renameSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect } from './fixture.mjs';

/** @typedef {import('./fixture.mjs').AuthorityFixture} AuthorityFixture */

/** Defines a tool with a program. @param {AuthorityFixture} fixture */
function definePayTool(fixture) {
  fixture.write('loops/tool.sh', fixture.shell('A'), 0o755);
  fixture.define('pay', { tool: { implementation: 'exec:./tool.sh' } });
}

/**
 * Spellings of a directory, and whether the project is trusted by each.
 * @type {Record<string, [
 *   spelling: (fixture: AuthorityFixture) => string,
 *   isTrusted: boolean,
 *   prepare?: (fixture: AuthorityFixture) => void,
 * ]>}
 */
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
  'below-loops': [() => 'loops/sub', false, (fixture) => mkdirSync(fixture.path('loops/sub'))],
  'other-directory-of-it': [() => 'docs', false, (fixture) => mkdirSync(fixture.path('docs'))],
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
  'link-below-it-away': [() => 'away', false, (fixture) => symlinkSync(fixture.outside, fixture.path('away'))],
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

/** @returns {import('../runner.mjs').Case[]} */
function spellingCases() {
  return Object.entries(SPELLINGS).flatMap(([name, [spell, isTrusted, prepare]]) =>
    ['flag', 'variable', 'remembered'].map((how) => ({
      id: `trust.spelling.${name}.${how}`,
      run: async (/** @type {AuthorityFixture} */ fixture) => {
        definePayTool(fixture);
        prepare?.(fixture);
        const spelling = spell(fixture);
        if (how === 'remembered') await fixture.rondo(['trust', spelling]);
        const args = ['run', 'pay', '--input', '{}', ...(how === 'flag' ? ['--trust', spelling] : [])];
        await fixture.rondo(args, how === 'variable' ? { trust: spelling } : {});
        const ran = fixture.count('A');
        expect(ran === (isTrusted ? 1 : 0), isTrusted ? 'the tool to run' : 'nothing to run', { spelling, ran });
      },
    })),
  );
}

/** Values of RONDO_TRUST. @type {Record<string, [list: (fixture: AuthorityFixture) => string, isTrusted: boolean]>} */
const LISTS = {
  empty: [() => '', false],
  separators: [() => ':::', false],
  'last-of-two': [({ outside, project }) => `${outside}:${project}`, true],
  'empty-parts': [({ project }) => `::${project}::`, true],
  'one-is-absent': [({ project }) => `/nowhere/at/all:${project}`, false],
  'relative-parts': [() => 'loops:docs', false],
};

/** @returns {import('../runner.mjs').Case[]} */
function listCases() {
  return Object.entries(LISTS).map(([name, [list, isTrusted]]) => ({
    id: `trust.list.${name}`,
    run: async (/** @type {AuthorityFixture} */ fixture) => {
      definePayTool(fixture);
      await fixture.rondo(['run', 'pay', '--input', '{}'], { trust: list(fixture) });
      expect(
        fixture.count('A') === (isTrusted ? 1 : 0),
        isTrusted ? 'the tool to run' : 'nothing to run',
        fixture.executed(),
      );
    },
  }));
}

/** Directories that `rondo trust` refuses. @type {Record<string, (fixture: AuthorityFixture) => string>} */
const REFUSED_DIRECTORIES = {
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

/** @returns {import('../runner.mjs').Case[]} */
function refusedDirectoryCases() {
  return Object.entries(REFUSED_DIRECTORIES).map(([name, directoryOf]) => ({
    id: `trust.too-much.${name}`,
    run: async (/** @type {AuthorityFixture} */ fixture) => {
      definePayTool(fixture);
      const { code } = await fixture.rondo(['trust', directoryOf(fixture)]);
      await fixture.rondo(['run', 'pay', '--input', '{}']);
      expect(code === 64 && fixture.count('A') === 0, 'the directory to be refused', {
        code,
        ran: fixture.executed(),
      });
    },
  }));
}

/** @returns {import('../runner.mjs').Case[]} */
function revokedTrustCases() {
  return [
    {
      id: 'trust.changed.taken-back',
      run: async (fixture) => {
        definePayTool(fixture);
        await fixture.rondo(['trust', '.']);
        await fixture.rondo(['trust', '.', '--remove']);
        await fixture.rondo(['run', 'pay', '--input', '{}']);
        fixture.assertNothingExecuted('nothing to run after trust was revoked');
      },
    },
    {
      id: 'trust.changed.taken-back-by-a-link',
      run: async (fixture) => {
        definePayTool(fixture);
        symlinkSync(fixture.project, join(fixture.base, 'link'));
        await fixture.rondo(['trust', join(fixture.base, 'link')]);
        await fixture.rondo(['trust', join(fixture.base, 'link'), '--remove']);
        await fixture.rondo(['run', 'pay', '--input', '{}']);
        fixture.assertNothingExecuted('nothing to run after trust was revoked');
      },
    },
  ];
}

/** @returns {import('../runner.mjs').Case[]} */
function replacedDirectoryCases() {
  return [
    {
      id: 'trust.changed.the-link-leads-elsewhere',
      run: async (fixture) => {
        definePayTool(fixture);
        const link = join(fixture.base, 'link');
        mkdirSync(join(fixture.base, 'good'));
        symlinkSync(join(fixture.base, 'good'), link);
        await fixture.rondo(['trust', link]);
        rmSync(link);
        symlinkSync(fixture.project, link);
        await fixture.rondo(['run', 'pay', '--input', '{}']);
        fixture.assertNothingExecuted('trust to apply to the original directory only');
      },
    },
    {
      id: 'trust.changed.replaced-by-a-link-to-a-clone',
      run: async (fixture) => {
        definePayTool(fixture);
        const trustedPath = join(fixture.base, 'good');
        mkdirSync(trustedPath);
        await fixture.rondo(['trust', trustedPath]);
        rmSync(trustedPath, { recursive: true });
        symlinkSync(fixture.project, trustedPath);
        await fixture.rondo(['run', 'pay', '--input', '{}']);
        // The trusted path is a link now. Only a user with write access could change it; `rondo trust` lists it.
        const listed = await fixture.json(['trust']);
        expect(fixture.count('A') === 0 || listed.directories.length > 0, 'the trusted path to be listed', listed);
      },
    },
    {
      id: 'trust.changed.moved-away',
      run: async (fixture) => {
        definePayTool(fixture);
        await fixture.rondo(['trust', '.']);
        renameSync(fixture.project, `${fixture.project}-moved`);
        await fixture.rondo(['run', 'pay', '--input', '{}'], { cwd: `${fixture.project}-moved` });
        fixture.assertNothingExecuted('trust not to follow a moved directory');
      },
    },
    ...['run', 'list', 'check'].map((verb) => ({
      id: `trust.changed.a-subdirectory-leads-out.${verb}`,
      run: async (/** @type {AuthorityFixture} */ fixture) => {
        writeFileSync(join(fixture.outside, 'code.mjs'), fixture.module('code'));
        writeFileSync(join(fixture.outside, 'tool.sh'), fixture.shell('B'), { mode: 0o755 });
        rmSync(fixture.path('loops'), { recursive: true });
        symlinkSync(fixture.outside, fixture.path('loops'));
        fixture.define('pay', { tool: { implementation: 'exec:./tool.sh' } });
        expect(existsSync(join(fixture.outside, 'pay.json')), 'a definition file outside', 'none');
        await fixture.rondo(verb === 'run' ? ['run', 'pay', '--input', '{}'] : [verb], { trust: true });
        fixture.assertNothingExecuted('trust in the project not to cover the target of a link');
      },
    })),
  ];
}

/** Names of directories that the trust file must be able to store. */
const DIRECTORY_NAMES = {
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

/**
 * A directory is trusted, its tool runs, and the trust is revoked; the trust file stays valid.
 * @returns {import('../runner.mjs').Case[]}
 */
function directoryNameCases() {
  return Object.entries(DIRECTORY_NAMES).map(([name, directory]) => ({
    id: `trust.name.${name}`,
    run: async (/** @type {AuthorityFixture} */ fixture) => {
      definePayTool(fixture);
      const path = join(fixture.base, directory);
      renameSync(fixture.project, path);
      await fixture.rondo(['trust', '.'], { cwd: path });
      const { code, stderr } = await fixture.rondo(['run', 'pay', '--input', '{}'], { cwd: path });
      expect(code === 0 && fixture.count('A') === 1, 'the directory to be trusted', stderr);
      const { send, directories } = await fixture.json(['trust', '.', '--remove'], { cwd: path });
      expect(directories.length === 0 && Object.keys(send).length === 0, 'no other entry in the trust file', {
        send,
        directories,
      });
    },
  }));
}

export const cases = () => [
  ...spellingCases(),
  ...listCases(),
  ...directoryNameCases(),
  ...refusedDirectoryCases(),
  ...revokedTrustCases(),
  ...replacedDirectoryCases(),
];
