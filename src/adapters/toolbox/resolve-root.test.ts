/** The path of a root must not contain a link that a command could have created. */
import { mkdirSync, readFileSync, renameSync, symlinkSync } from 'node:fs';
import { join, relative } from 'node:path';
import { afterAll, expect } from 'vitest';
import { cleanUp, createWorkspace, SECRET } from '../../../spec/support/toolbox-fixture.mjs';
import { verifies } from '../../../spec/verifies.js';
import { toolbox } from './index.js';
import { resolveRoot } from './resolve-root.js';

afterAll(cleanUp);

const creating = (root: string) => (): unknown => toolbox({ roots: [root] });

verifies('toolbox.confined', 'a root that a command of another tool replaced by a link is refused', () => {
  const { root, outside } = createWorkspace({ 'inner/deep/a.txt': 'a\n' });
  expect(creating(join(root, 'inner'))).not.toThrow();
  renameSync(join(root, 'inner'), join(root, 'original'));
  symlinkSync(outside, join(root, 'inner'));
  symlinkSync('inner', join(root, 'again'));
  mkdirSync(join(outside, 'deep'));
  for (const name of ['inner', 'inner/deep', 'again', 'again/../inner', './inner/']) {
    expect(creating(`${root}/${name}`), name).toThrow(/is reached through the symbolic link/);
  }
  expect(creating(join(root, 'original'))).not.toThrow();
  expect(readFileSync(join(outside, 'secret.txt'), 'utf8')).toContain(SECRET);
});

verifies('toolbox.confined', 'the error names the link and its target', () => {
  const { root, outside } = createWorkspace();
  symlinkSync(outside, join(root, 'link'));
  expect(creating(join(root, 'link'))).toThrow(
    `The root ${join(root, 'link')} is reached through the symbolic link ${join(root, 'link')}, which a command with write access to ${root} could replace. Use the directory itself: ${outside}.`,
  );
});

verifies('toolbox.confined', 'links in directories that are not writable are followed', () => {
  const { root, outside } = createWorkspace();
  symlinkSync(outside, join(root, 'absolute'));
  symlinkSync(relative(root, outside), join(root, 'relative'));
  symlinkSync('absolute', join(root, 'twice'));
  mkdirSync(join(outside, 'sub'));
  const follow = (path: string): string => resolveRoot(path, () => false);
  expect(follow(join(root, 'absolute'))).toBe(outside);
  expect(follow(join(root, 'relative'))).toBe(outside);
  expect(follow(join(root, 'twice/sub'))).toBe(join(outside, 'sub'));
  symlinkSync('loop', join(root, 'loop'));
  expect(() => follow(join(root, 'loop'))).toThrow(/cannot be used \(ELOOP\)/);
});
