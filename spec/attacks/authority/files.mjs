// The toolbox under approval: links and other files that appear in every position between the question and the deed.

import { execFileSync } from 'node:child_process';
import {
  existsSync,
  linkSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { Broken, expect, handOf, hostOf, toolboxLibrary } from './world.mjs';

/** @typedef {import('./world.mjs').World} World */
/** @typedef {{ top: string, outside: string }} Place */

/** @param {string} directory @returns {Record<string, string>} */
function treeOf(directory) {
  const found = /** @type {Record<string, string>} */ ({});
  for (const name of readdirSync(directory, { recursive: true, encoding: 'utf8' })) {
    const path = join(directory, name);
    const status = statSync(path, { throwIfNoEntry: false });
    if (status?.isFile()) found[name] = readFileSync(path, 'utf8');
  }
  return found;
}

/** What is put where between the question and the deed; `may` says whether the deed may still be done. @type {Record<string, [may: boolean, change: (place: Place) => void]>} */
const EXISTING = {
  'file-to-link-inside': [
    false,
    ({ top }) => {
      rmSync(join(top, 'd/f.txt'));
      symlinkSync('../other.txt', join(top, 'd/f.txt'));
    },
  ],
  'file-to-link-outside': [
    false,
    ({ top, outside }) => {
      rmSync(join(top, 'd/f.txt'));
      symlinkSync(join(outside, 'f.txt'), join(top, 'd/f.txt'));
    },
  ],
  'file-to-hard-link': [
    true,
    ({ top, outside }) => {
      rmSync(join(top, 'd/f.txt'));
      linkSync(join(outside, 'f.txt'), join(top, 'd/f.txt'));
    },
  ],
  'file-to-directory': [
    false,
    ({ top }) => {
      rmSync(join(top, 'd/f.txt'));
      mkdirSync(join(top, 'd/f.txt'));
    },
  ],
  'file-to-pipe': [
    false,
    ({ top }) => {
      rmSync(join(top, 'd/f.txt'));
      execFileSync('mkfifo', [join(top, 'd/f.txt')]);
    },
  ],
  'directory-to-link-inside': [
    false,
    ({ top }) => {
      renameSync(join(top, 'd'), join(top, 'was'));
      symlinkSync('e', join(top, 'd'));
    },
  ],
  'directory-to-link-outside': [
    false,
    ({ top, outside }) => {
      renameSync(join(top, 'd'), join(top, 'was'));
      symlinkSync(outside, join(top, 'd'));
    },
  ],
  'directory-to-link-to-itself-moved': [
    false,
    ({ top }) => {
      renameSync(join(top, 'd'), join(top, 'was'));
      symlinkSync('was', join(top, 'd'));
    },
  ],
  'root-to-link': [
    false,
    ({ top, outside }) => {
      renameSync(top, `${top}-was`);
      mkdirSync(join(outside, 'd'));
      writeFileSync(join(outside, 'd/f.txt'), 'old text');
      symlinkSync(outside, top);
    },
  ],
  'root-replaced': [
    true,
    ({ top }) => {
      execFileSync('cp', ['-a', top, `${top}-copy`]);
      renameSync(top, `${top}-was`);
      renameSync(`${top}-copy`, top);
    },
  ],
};

/** @type {Record<string, [may: boolean, change: (place: Place) => void]>} */
const NEW = {
  'created-since': [false, ({ top }) => writeFileSync(join(top, 'd/n/new.txt'), 'of another user')],
  'created-as-link-inside': [false, ({ top }) => symlinkSync('../../other.txt', join(top, 'd/n/new.txt'))],
  'created-as-link-outside': [
    false,
    ({ top, outside }) => symlinkSync(join(outside, 'f.txt'), join(top, 'd/n/new.txt')),
  ],
  'created-as-dangling-link': [
    false,
    ({ top, outside }) => symlinkSync(join(outside, 'later'), join(top, 'd/n/new.txt')),
  ],
  'created-as-hard-link': [false, ({ top, outside }) => linkSync(join(outside, 'f.txt'), join(top, 'd/n/new.txt'))],
  'parent-to-link-outside': [
    false,
    ({ top, outside }) => {
      rmSync(join(top, 'd/n'), { recursive: true });
      symlinkSync(outside, join(top, 'd/n'));
    },
  ],
  'parent-to-link-inside': [
    false,
    ({ top }) => {
      rmSync(join(top, 'd/n'), { recursive: true });
      symlinkSync('../e', join(top, 'd/n'));
    },
  ],
  'grandparent-to-link': [
    false,
    ({ top, outside }) => {
      renameSync(join(top, 'd'), join(top, 'was'));
      mkdirSync(join(outside, 'n'));
      symlinkSync(outside, join(top, 'd'));
    },
  ],
};

/** @param {World} world */
function stage(world) {
  const top = world.path('work');
  for (const folder of ['d/n', 'e']) mkdirSync(join(top, folder), { recursive: true });
  writeFileSync(join(top, 'd/f.txt'), 'old text');
  writeFileSync(join(top, 'e/f.txt'), 'old text');
  writeFileSync(join(top, 'other.txt'), 'old text');
  writeFileSync(join(world.outside, 'f.txt'), 'old text');
  return { top, outside: world.outside };
}

/** @param {any} tool @param {object} input */
async function asking(tool, input) {
  const { host } = await hostOf();
  const turn = await host.run({ loop: await handOf(tool), input, sessionId: 's' });
  const [approval] = await host.archive.approvals('s');
  expect(approval !== undefined, 'it to be asked about', turn);
  return { host, turn, approval };
}

/** @param {World} world @param {string} name @param {object} input @param {boolean} may @param {(place: Place) => void} change @param {boolean} before */
async function changed(world, name, input, may, change, before) {
  const { toolbox } = await toolboxLibrary();
  const place = stage(world);
  const tool = toolbox({ roots: [place.top] })[name];
  const { host, turn, approval } = await asking(tool, input);
  const answer = () => host.answer({ id: approval.id, approved: true, by: 'ada' });
  if (!before) await answer();
  change(place);
  const [inside, outside] = [treeOf(place.top), treeOf(place.outside)];
  if (before) await answer();
  await host.resume(turn.turnId);
  const after = [JSON.stringify(treeOf(place.top)), JSON.stringify(treeOf(place.outside))];
  expect(after[1] === JSON.stringify(outside), 'nothing outside to change', after[1]);
  if (!may) expect(after[0] === JSON.stringify(inside), 'nothing to be written: it leads elsewhere', after[0]);
}

/** @returns {import('../authority.mjs').Case[]} */
function changes() {
  const tools = /** @type {[string, string, object, typeof EXISTING][]} */ ([
    ['write_file', 'existing', { path: 'd/f.txt', content: 'evil' }, EXISTING],
    ['edit_file', 'existing', { path: 'd/f.txt', old: 'old', new: 'evil' }, EXISTING],
    ['write_file', 'new', { path: 'd/n/new.txt', content: 'evil' }, NEW],
  ]);
  return tools.flatMap(([name, kind, input, table]) =>
    Object.entries(table).flatMap(([what, [may, change]]) =>
      ['before-answer', 'after-answer'].map((moment) => ({
        id: `targets.${name}.${kind}.${what}.${moment}`,
        run: (/** @type {World} */ world) => changed(world, name, input, may, change, moment === 'before-answer'),
      })),
    ),
  );
}

/** A grant for one directory, and paths that only look as if they lay in it. */
const PATHS = {
  'dot-dot': 'd/../other.txt',
  'dot-dot-deep': 'd/n/../../e/f.txt',
  'dot-dot-of-nothing': 'd/nothing/../../other.txt',
  link: 'd/link.txt',
  'link-directory': 'd/away/f.txt',
  'link-then-dot-dot': 'd/away/../other.txt',
  'double-slash': 'd//../other.txt',
};

/** @returns {import('../authority.mjs').Case[]} */
function grants() {
  const standing = { properties: { path: { pattern: '^d/' } } };
  return Object.entries(PATHS).map(([name, path]) => ({
    id: `targets.grant.${name}`,
    run: async (/** @type {World} */ world) => {
      const { toolbox } = await toolboxLibrary();
      const { top } = stage(world);
      symlinkSync('../other.txt', join(top, 'd/link.txt'));
      symlinkSync('../e', join(top, 'd/away'));
      const { host, turn, approval } = await asking(toolbox({ roots: [top] }).write_file, {
        path: 'd/f.txt',
        content: 'good',
      });
      await host.answer({ id: approval.id, approved: true, by: 'ada', standing });
      await host.resume(turn.turnId);
      const next = await host.run({ loop: turn.loopId, input: { path, content: 'evil' }, sessionId: 's' });
      const written = ['other.txt', 'e/f.txt'].filter((file) => readFileSync(join(top, file), 'utf8') === 'evil');
      expect(written.length === 0, 'a grant for d/ to cover nothing outside of d/', { written, status: next.status });
    },
  }));
}

/** @returns {import('../authority.mjs').Case[]} */
function commands() {
  /** @type {Record<string, (place: Place) => void>} */
  const table = {
    'directory-to-link-inside': EXISTING['directory-to-link-inside']?.[1] ?? (() => {}),
    'directory-to-link-outside': EXISTING['directory-to-link-outside']?.[1] ?? (() => {}),
    'root-to-link': EXISTING['root-to-link']?.[1] ?? (() => {}),
    'directory-gone': ({ top }) => rmSync(join(top, 'd'), { recursive: true }),
  };
  return Object.entries(table).flatMap(([name, change]) =>
    ['off', 'preferred'].map((sandbox) => ({
      id: `targets.run_command.${name}.sandbox-${sandbox}`,
      run: async (/** @type {World} */ world) => {
        const { toolbox } = await toolboxLibrary();
        const place = stage(world);
        const tool = toolbox({ roots: [place.top], commands: { sandbox } }).run_command;
        const { host, turn, approval } = await asking(tool, { command: 'echo ran > ran.txt', directory: 'd' });
        change(place);
        await host.answer({ id: approval.id, approved: true, by: 'ada' });
        await host.resume(turn.turnId);
        const ran = [place.top, place.outside, `${place.top}-was`]
          .filter(existsSync)
          .flatMap((directory) => Object.keys(treeOf(directory)).filter((file) => file.endsWith('ran.txt')));
        expect(ran.length === 0, 'the command not to run elsewhere', ran);
      },
    })),
  );
}

/** A sandbox that is gone when the command runs. @returns {import('../authority.mjs').Case[]} */
function confinement() {
  return ['removed', 'fails'].map((how) => ({
    id: `targets.run_command.sandbox-${how}`,
    run: async (/** @type {World} */ world) => {
      const wrapper = world.write('bw', '#!/bin/sh\nexec /usr/bin/bwrap "$@"\n', 0o755);
      mkdirSync(world.path('loops/work'));
      const config = { roots: ['work'], commands: { sandbox: 'preferred', bubblewrap: wrapper } };
      world.define('hand', { tool: { implementation: 'toolbox:run_command', config } });
      const { id } = await world.ask('hand', { given: { command: `echo ran >> '${world.mark}'; echo ran > ran.txt` } });
      const [{ target }] = await world.json(['approvals']);
      if (/WITHOUT/.test(target.confinement)) throw new Broken('skipped: bubblewrap does not work here');
      if (how === 'removed') rmSync(wrapper);
      else writeFileSync(wrapper, '#!/bin/sh\nexit 1\n');
      await world.rondo(['approve', id], { trust: true });
      world.expectNothing('a command that was approved in a sandbox not to run without one');
      expect(!existsSync(world.path('loops/work/ran.txt')), 'the command not to run', 'it ran');
    },
  }));
}

export const cases = () => [...changes(), ...grants(), ...commands(), ...confinement()];
