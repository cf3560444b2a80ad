// The toolbox with approvals: links and other files that appear between the approval request and the call.

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
import { createHost, ExpectationError, expect, singleToolAgent, toolboxLibrary } from './fixture.mjs';

/** @typedef {import('./fixture.mjs').AuthorityFixture} AuthorityFixture */
/** @typedef {{ root: string, outside: string }} Directories */

/** Returns the content of all files below a directory. @param {string} directory @returns {Record<string, string>} */
function readTree(directory) {
  const tree = /** @type {Record<string, string>} */ ({});
  for (const name of readdirSync(directory, { recursive: true, encoding: 'utf8' })) {
    const path = join(directory, name);
    const status = statSync(path, { throwIfNoEntry: false });
    if (status?.isFile()) tree[name] = readFileSync(path, 'utf8');
  }
  return tree;
}

/**
 * Changes between the approval request and the call, and whether the call may still write.
 * @type {Record<string, [mayWrite: boolean, change: (directories: Directories) => void]>}
 */
const EXISTING_FILE_CHANGES = {
  'file-to-link-inside': [
    false,
    ({ root }) => {
      rmSync(join(root, 'd/f.txt'));
      symlinkSync('../other.txt', join(root, 'd/f.txt'));
    },
  ],
  'file-to-link-outside': [
    false,
    ({ root, outside }) => {
      rmSync(join(root, 'd/f.txt'));
      symlinkSync(join(outside, 'f.txt'), join(root, 'd/f.txt'));
    },
  ],
  'file-to-hard-link': [
    true,
    ({ root, outside }) => {
      rmSync(join(root, 'd/f.txt'));
      linkSync(join(outside, 'f.txt'), join(root, 'd/f.txt'));
    },
  ],
  'file-to-directory': [
    false,
    ({ root }) => {
      rmSync(join(root, 'd/f.txt'));
      mkdirSync(join(root, 'd/f.txt'));
    },
  ],
  'file-to-pipe': [
    false,
    ({ root }) => {
      rmSync(join(root, 'd/f.txt'));
      execFileSync('mkfifo', [join(root, 'd/f.txt')]);
    },
  ],
  'directory-to-link-inside': [
    false,
    ({ root }) => {
      renameSync(join(root, 'd'), join(root, 'was'));
      symlinkSync('e', join(root, 'd'));
    },
  ],
  'directory-to-link-outside': [
    false,
    ({ root, outside }) => {
      renameSync(join(root, 'd'), join(root, 'was'));
      symlinkSync(outside, join(root, 'd'));
    },
  ],
  'directory-to-link-to-itself-moved': [
    false,
    ({ root }) => {
      renameSync(join(root, 'd'), join(root, 'was'));
      symlinkSync('was', join(root, 'd'));
    },
  ],
  'root-to-link': [
    false,
    ({ root, outside }) => {
      renameSync(root, `${root}-was`);
      mkdirSync(join(outside, 'd'));
      writeFileSync(join(outside, 'd/f.txt'), 'old text');
      symlinkSync(outside, root);
    },
  ],
  'root-replaced': [
    true,
    ({ root }) => {
      execFileSync('cp', ['-a', root, `${root}-copy`]);
      renameSync(root, `${root}-was`);
      renameSync(`${root}-copy`, root);
    },
  ],
};

/**
 * The same for a path that does not exist.
 * @type {Record<string, [mayWrite: boolean, change: (directories: Directories) => void]>}
 */
const NEW_FILE_CHANGES = {
  'created-since': [false, ({ root }) => writeFileSync(join(root, 'd/n/new.txt'), 'of another user')],
  'created-as-link-inside': [false, ({ root }) => symlinkSync('../../other.txt', join(root, 'd/n/new.txt'))],
  'created-as-link-outside': [
    false,
    ({ root, outside }) => symlinkSync(join(outside, 'f.txt'), join(root, 'd/n/new.txt')),
  ],
  'created-as-dangling-link': [
    false,
    ({ root, outside }) => symlinkSync(join(outside, 'later'), join(root, 'd/n/new.txt')),
  ],
  'created-as-hard-link': [false, ({ root, outside }) => linkSync(join(outside, 'f.txt'), join(root, 'd/n/new.txt'))],
  'parent-to-link-outside': [
    false,
    ({ root, outside }) => {
      rmSync(join(root, 'd/n'), { recursive: true });
      symlinkSync(outside, join(root, 'd/n'));
    },
  ],
  'parent-to-link-inside': [
    false,
    ({ root }) => {
      rmSync(join(root, 'd/n'), { recursive: true });
      symlinkSync('../e', join(root, 'd/n'));
    },
  ],
  'grandparent-to-link': [
    false,
    ({ root, outside }) => {
      renameSync(join(root, 'd'), join(root, 'was'));
      mkdirSync(join(outside, 'n'));
      symlinkSync(outside, join(root, 'd'));
    },
  ],
};

/** Creates the files of a case. @param {AuthorityFixture} fixture */
function createFiles(fixture) {
  const root = fixture.path('work');
  for (const folder of ['d/n', 'e']) mkdirSync(join(root, folder), { recursive: true });
  writeFileSync(join(root, 'd/f.txt'), 'old text');
  writeFileSync(join(root, 'e/f.txt'), 'old text');
  writeFileSync(join(root, 'other.txt'), 'old text');
  writeFileSync(join(fixture.outside, 'f.txt'), 'old text');
  return { root, outside: fixture.outside };
}

/** Calls a tool until it requests approval. @param {any} tool @param {object} input */
async function requestApproval(tool, input) {
  const { host } = await createHost();
  const turn = await host.run({ loop: await singleToolAgent(tool), input, sessionId: 's' });
  const [approval] = await host.archive.approvals('s');
  expect(approval !== undefined, 'an approval request', turn);
  return { host, turn, approval };
}

/**
 * A call whose target changed after the approval request writes nothing outside, and nothing at all unless `mayWrite`.
 * @param {AuthorityFixture} fixture @param {string} name @param {object} input @param {boolean} mayWrite
 * @param {(directories: Directories) => void} change @param {boolean} isBeforeAnswer
 */
async function runWithChange(fixture, name, input, mayWrite, change, isBeforeAnswer) {
  const { toolbox } = await toolboxLibrary();
  const directories = createFiles(fixture);
  const tool = toolbox({ roots: [directories.root] })[name];
  const { host, turn, approval } = await requestApproval(tool, input);
  const answer = () => host.answer({ id: approval.id, approved: true, by: 'ada' });
  if (!isBeforeAnswer) await answer();
  change(directories);
  const [inside, outside] = [readTree(directories.root), readTree(directories.outside)];
  if (isBeforeAnswer) await answer();
  await host.resume(turn.turnId);
  const after = [JSON.stringify(readTree(directories.root)), JSON.stringify(readTree(directories.outside))];
  expect(after[1] === JSON.stringify(outside), 'no file outside to change', after[1]);
  if (!mayWrite) expect(after[0] === JSON.stringify(inside), 'nothing to be written to the changed target', after[0]);
}

/** @returns {import('../runner.mjs').Case[]} */
function changeCases() {
  const tools = /** @type {[string, string, object, typeof EXISTING_FILE_CHANGES][]} */ ([
    ['write_file', 'existing', { path: 'd/f.txt', content: 'evil' }, EXISTING_FILE_CHANGES],
    ['edit_file', 'existing', { path: 'd/f.txt', old: 'old', new: 'evil' }, EXISTING_FILE_CHANGES],
    ['write_file', 'new', { path: 'd/n/new.txt', content: 'evil' }, NEW_FILE_CHANGES],
  ]);
  return tools.flatMap(([name, kind, input, table]) =>
    Object.entries(table).flatMap(([changeName, [mayWrite, change]]) =>
      ['before-answer', 'after-answer'].map((moment) => ({
        id: `targets.${name}.${kind}.${changeName}.${moment}`,
        run: (/** @type {AuthorityFixture} */ fixture) =>
          runWithChange(fixture, name, input, mayWrite, change, moment === 'before-answer'),
      })),
    ),
  );
}

/** Paths that match the grant for `d/` textually and lead outside of `d/`. */
const ESCAPING_PATHS = {
  'dot-dot': 'd/../other.txt',
  'dot-dot-deep': 'd/n/../../e/f.txt',
  'dot-dot-of-nothing': 'd/nothing/../../other.txt',
  link: 'd/link.txt',
  'link-directory': 'd/away/f.txt',
  'link-then-dot-dot': 'd/away/../other.txt',
  'double-slash': 'd//../other.txt',
};

/** @returns {import('../runner.mjs').Case[]} */
function grantCases() {
  const standing = { properties: { path: { pattern: '^d/' } } };
  return Object.entries(ESCAPING_PATHS).map(([name, path]) => ({
    id: `targets.grant.${name}`,
    run: async (/** @type {AuthorityFixture} */ fixture) => {
      const { toolbox } = await toolboxLibrary();
      const { root } = createFiles(fixture);
      symlinkSync('../other.txt', join(root, 'd/link.txt'));
      symlinkSync('../e', join(root, 'd/away'));
      const { host, turn, approval } = await requestApproval(toolbox({ roots: [root] }).write_file, {
        path: 'd/f.txt',
        content: 'good',
      });
      await host.answer({ id: approval.id, approved: true, by: 'ada', standing });
      await host.resume(turn.turnId);
      const next = await host.run({ loop: turn.loopId, input: { path, content: 'evil' }, sessionId: 's' });
      const written = ['other.txt', 'e/f.txt'].filter((file) => readFileSync(join(root, file), 'utf8') === 'evil');
      expect(written.length === 0, 'a grant for d/ to cover nothing outside of d/', { written, status: next.status });
    },
  }));
}

/** @returns {import('../runner.mjs').Case[]} */
function commandCases() {
  /** @type {Record<string, (directories: Directories) => void>} */
  const changes = {
    'directory-to-link-inside': EXISTING_FILE_CHANGES['directory-to-link-inside']?.[1] ?? (() => {}),
    'directory-to-link-outside': EXISTING_FILE_CHANGES['directory-to-link-outside']?.[1] ?? (() => {}),
    'root-to-link': EXISTING_FILE_CHANGES['root-to-link']?.[1] ?? (() => {}),
    'directory-gone': ({ root }) => rmSync(join(root, 'd'), { recursive: true }),
  };
  return Object.entries(changes).flatMap(([name, change]) =>
    ['off', 'preferred'].map((sandbox) => ({
      id: `targets.run_command.${name}.sandbox-${sandbox}`,
      run: async (/** @type {AuthorityFixture} */ fixture) => {
        const { toolbox } = await toolboxLibrary();
        const directories = createFiles(fixture);
        const tool = toolbox({ roots: [directories.root], commands: { sandbox } }).run_command;
        const { host, turn, approval } = await requestApproval(tool, { command: 'echo ran > ran.txt', directory: 'd' });
        change(directories);
        await host.answer({ id: approval.id, approved: true, by: 'ada' });
        await host.resume(turn.turnId);
        const ran = [directories.root, directories.outside, `${directories.root}-was`]
          .filter(existsSync)
          .flatMap((directory) => Object.keys(readTree(directory)).filter((file) => file.endsWith('ran.txt')));
        expect(ran.length === 0, 'the command not to run in another directory', ran);
      },
    })),
  );
}

/** The sandbox is not available when the approved command runs. @returns {import('../runner.mjs').Case[]} */
function sandboxCases() {
  return ['removed', 'fails'].map((how) => ({
    id: `targets.run_command.sandbox-${how}`,
    run: async (/** @type {AuthorityFixture} */ fixture) => {
      const wrapper = fixture.write('bw', '#!/bin/sh\nexec /usr/bin/bwrap "$@"\n', 0o755);
      mkdirSync(fixture.path('loops/work'));
      const config = { roots: ['work'], commands: { sandbox: 'preferred', bubblewrap: wrapper } };
      fixture.define('shell', { tool: { implementation: 'toolbox:run_command', config } });
      const { id } = await fixture.requestApproval('shell', {
        loopInput: { command: `echo ran >> '${fixture.executionLog}'; echo ran > ran.txt` },
      });
      const [{ target }] = (await fixture.json(['approvals'])).approvals;
      if (/WITHOUT/.test(target.confinement)) throw new ExpectationError('skipped: bubblewrap does not work here');
      if (how === 'removed') rmSync(wrapper);
      else writeFileSync(wrapper, '#!/bin/sh\nexit 1\n');
      await fixture.rondo(['approve', id], { trust: true });
      fixture.assertNothingExecuted('a command that was approved for a sandbox not to run without one');
      expect(!existsSync(fixture.path('loops/work/ran.txt')), 'the command not to run', 'it ran');
    },
  }));
}

export const cases = () => [...changeCases(), ...grantCases(), ...commandCases(), ...sandboxCases()];
