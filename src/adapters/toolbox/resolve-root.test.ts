/** Roots are not reached through links that a command could have made. */
import { mkdirSync, readFileSync, renameSync, symlinkSync } from 'node:fs';
import { join, relative } from 'node:path';
import { afterAll, expect } from 'vitest';
import { cleanUp, SECRET, stage } from '../../../spec/support/toolbox-fixture.mjs';
import { verifies } from '../../../spec/verifies.js';
import { toolbox } from './index.js';
import { resolveRoot } from './resolve-root.js';

afterAll(cleanUp);

const made = (root: string) => (): unknown => toolbox({ roots: [root] });

verifies(
  'toolbox.confined',
  'a root in the root of another tool does not lead out of it once it was replaced by a link',
  () => {
    const { root, outside } = stage({ 'inner/deep/a.txt': 'a\n' });
    expect(made(join(root, 'inner'))).not.toThrow();
    renameSync(join(root, 'inner'), join(root, 'kept'));
    symlinkSync(outside, join(root, 'inner'));
    symlinkSync('inner', join(root, 'again'));
    mkdirSync(join(outside, 'deep'));
    for (const name of ['inner', 'inner/deep', 'again', 'again/../inner', './inner/']) {
      expect(made(`${root}/${name}`), name).toThrow(/is reached through the symbolic link/);
    }
    expect(made(join(root, 'kept'))).not.toThrow();
    expect(readFileSync(join(outside, 'secret.txt'), 'utf8')).toContain(SECRET);
  },
);

verifies('toolbox.confined', 'a refused link is named with the directory that it leads to', () => {
  const { root, outside } = stage();
  symlinkSync(outside, join(root, 'link'));
  expect(made(join(root, 'link'))).toThrow(
    `The root ${join(root, 'link')} is reached through the symbolic link ${join(root, 'link')}, which a command with write access to ${root} could replace. Name the directory itself: ${outside}.`,
  );
});

verifies('toolbox.confined', 'links of the system, which nobody else can replace, are followed', () => {
  const { root, outside } = stage();
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
