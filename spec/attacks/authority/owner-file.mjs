// The operator's own file: who could have written it, where it lies, what stands in it.

import { execFileSync } from 'node:child_process';
import { chmodSync, chownSync, linkSync, mkdirSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { expect } from './world.mjs';

/** @typedef {import('./world.mjs').World} World */

const STRANGER = 54_321;

/** @param {World} world */
function stage(world) {
  world.write('loops/tool.sh', world.shell('A'), 0o755);
  world.define('pay', { tool: { implementation: 'exec:./tool.sh' } });
  const file = join(world.home, '.config/rondo/trust.toml');
  mkdirSync(dirname(file), { recursive: true, mode: 0o755 });
  writeFileSync(file, `directories = ["${world.project}"]\n`, { mode: 0o600 });
  return file;
}

/** What is done to it, and whether it is still believed. @type {Record<string, [believed: boolean, change: (world: World, file: string) => Record<string, string | undefined> | void]>} */
const STATES = {
  'mode-600': [true, () => {}],
  'mode-644': [true, (_, file) => chmodSync(file, 0o644)],
  'mode-444': [true, (_, file) => chmodSync(file, 0o444)],
  'mode-660': [false, (_, file) => chmodSync(file, 0o660)],
  'mode-606': [false, (_, file) => chmodSync(file, 0o606)],
  'mode-620': [false, (_, file) => chmodSync(file, 0o620)],
  'mode-777': [false, (_, file) => chmodSync(file, 0o777)],
  'directory-777': [false, (_, file) => chmodSync(dirname(file), 0o777)],
  'directory-775': [false, (_, file) => chmodSync(dirname(file), 0o775)],
  'directory-1777': [false, (_, file) => chmodSync(dirname(file), 0o1777)],
  'owner-stranger': [false, (_, file) => chownSync(file, STRANGER, STRANGER)],
  'directory-of-a-stranger': [false, (_, file) => chownSync(dirname(file), STRANGER, STRANGER)],
  'link-to-a-project-file': [
    false,
    (world, file) => {
      rmSync(file);
      symlinkSync(world.write('.trust.toml', `directories = ["${world.project}"]\n`, 0o600), file);
    },
  ],
  'directory-linked-to-the-project': [
    false,
    (world, file) => {
      rmSync(dirname(file), { recursive: true });
      world.write('rondo/trust.toml', `directories = ["${world.project}"]\n`, 0o600);
      symlinkSync(world.path('rondo'), dirname(file));
    },
  ],
  'link-to-a-writable-file': [
    false,
    (world, file) => {
      rmSync(file);
      const open = join(world.outside, 't.toml');
      writeFileSync(open, `directories = ["${world.project}"]\n`);
      chmodSync(open, 0o666);
      symlinkSync(open, file);
    },
  ],
  'link-in-a-writable-directory': [
    false,
    (world, file) => {
      rmSync(file);
      const open = join(world.outside, 't.toml');
      writeFileSync(open, `directories = ["${world.project}"]\n`, { mode: 0o600 });
      chmodSync(world.outside, 0o777);
      symlinkSync(open, file);
    },
  ],
  'a-directory': [
    false,
    (_, file) => {
      rmSync(file);
      mkdirSync(file);
    },
  ],
  'a-pipe': [
    false,
    (_, file) => {
      rmSync(file);
      execFileSync('mkfifo', ['-m', '600', file]);
    },
  ],
  'a-device': [
    false,
    (_, file) => {
      rmSync(file);
      symlinkSync('/dev/zero', file);
    },
  ],
  'dangling-link': [
    false,
    (_, file) => {
      rmSync(file);
      symlinkSync('nowhere', file);
    },
  ],
  'home-in-the-project': [
    false,
    (world) => {
      world.write('h/.config/rondo/trust.toml', `directories = ["${world.project}"]\n`, 0o600);
      return { HOME: world.path('h') };
    },
  ],
  'home-is-the-project': [
    false,
    (world) => {
      world.write('.config/rondo/trust.toml', `directories = ["${world.project}"]\n`, 0o600);
      return { HOME: world.project };
    },
  ],
  'xdg-in-the-project': [
    false,
    (world) => {
      world.write('x/rondo/trust.toml', `directories = ["${world.project}"]\n`, 0o600);
      return { XDG_CONFIG_HOME: world.path('x') };
    },
  ],
  'xdg-linked-to-the-project': [
    false,
    (world) => {
      world.write('x/rondo/trust.toml', `directories = ["${world.project}"]\n`, 0o600);
      symlinkSync(world.path('x'), join(world.base, 'x'));
      return { XDG_CONFIG_HOME: join(world.base, 'x') };
    },
  ],
  'xdg-with-dots': [
    false,
    (world) => {
      world.write('x/rondo/trust.toml', `directories = ["${world.project}"]\n`, 0o600);
      return { XDG_CONFIG_HOME: `${world.outside}/../work/project/x` };
    },
  ],
  'xdg-relative-is-ignored': [
    true,
    (world) => {
      world.write('x/rondo/trust.toml', 'directories = []\n', 0o600);
      return { XDG_CONFIG_HOME: 'x' };
    },
  ],
  'xdg-empty-is-ignored': [true, () => ({ XDG_CONFIG_HOME: '' })],
  'xdg-elsewhere': [false, (world) => ({ XDG_CONFIG_HOME: world.outside })],
  'appdata-in-the-project': [
    false,
    (world) => {
      world.write('x/rondo/trust.toml', `directories = ["${world.project}"]\n`, 0o600);
      return { APPDATA: world.path('x'), HOME: undefined };
    },
  ],
  'config-directory-holds-it': [
    false,
    (world, file) => {
      writeFileSync(join(world.home, 'rondo.toml'), '');
      return { RONDO_CONFIG: join(world.home, 'rondo.toml'), FILE: file };
    },
  ],
  'data-directory-holds-it': [false, (world) => ({ RONDO_DATA: join(world.home, '.config') })],
  'loops-directory-holds-it': [
    false,
    (world) => {
      execFileSync('cp', ['-a', `${world.path('loops')}/.`, join(world.home, '.config')]);
      return { RONDO_LOOPS: join(world.home, '.config') };
    },
  ],
  'hard-link-to-a-project-file': [
    true,
    (world, file) => {
      rmSync(file);
      linkSync(world.write('.t', `directories = ["${world.project}"]\n`, 0o600), file);
    },
  ],
};

/** Contents that must not be taken for trust; each is refused, or names something else. @type {Record<string, (world: World) => string>} */
const CONTENTS = {
  malformed: ({ project }) => `directories = ["${project}"`,
  'unknown-key': ({ project }) => `directories = ["${project}"]\ntrusted = true\n`,
  'unknown-table': ({ project }) => `directories = ["${project}"]\n[project]\na = 1\n`,
  'a-text': ({ project }) => `directories = "${project}"\n`,
  relative: () => 'directories = ["."]\n',
  star: () => 'directories = ["*"]\n',
  numbers: () => 'directories = [1]\n',
  nested: ({ project }) => `directories = [["${project}"]]\n`,
  'under-trust': ({ project }) => `[trust]\ndirectories = ["${project}"]\n`,
  twice: ({ project }) => `directories = []\ndirectories = ["${project}"]\n`,
  prefix: ({ project }) => `directories = ["${project.slice(0, -1)}"]\n`,
  'wildcard-destination': ({ project }) => `directories = ["${project}"]\ndestinations = ["*"]\n`,
  'wildcard-host': ({ project }) => `directories = ["${project}"]\n[send]\nMY_TOKEN = ["*.example.com"]\n`,
  'host-with-path': ({ project }) => `directories = ["${project}"]\n[send]\nMY_TOKEN = ["example.com/x"]\n`,
  'host-with-user': ({ project }) => `directories = ["${project}"]\n[send]\nMY_TOKEN = ["a@example.com"]\n`,
  'odd-variable': ({ project }) => `directories = ["${project}"]\n[send]\n"MY-TOKEN" = ["example.com"]\n`,
  'send-a-text': ({ project }) => `directories = ["${project}"]\n[send]\nMY_TOKEN = "example.com"\n`,
  huge: ({ project }) => `directories = ["${project}"]\n${'# x\n'.repeat(600_000)}`,
  'not-utf-8': ({ project }) => `directories = ["${project}"] # \u0000\ud800`,
  proto: ({ project }) => `[__proto__]\ndirectories = ["${project}"]\n`,
};

/** @returns {import('../authority.mjs').Case[]} */
export const cases = () => [
  ...Object.entries(STATES).map(([name, [believed, change]]) => ({
    id: `trust.file.${name}`,
    run: async (/** @type {World} */ world) => {
      const file = stage(world);
      const env = change(world, file) ?? {};
      const { code, stderr } = await world.rondo(['run', 'pay', '--input', '{}'], { env });
      const ran = world.count('A');
      expect(ran === (believed ? 1 : 0), believed ? 'it to be believed' : 'it not to be believed', {
        ran,
        code,
        stderr,
      });
    },
  })),
  ...Object.entries(CONTENTS).map(([name, content]) => ({
    id: `trust.content.${name}`,
    run: async (/** @type {World} */ world) => {
      writeFileSync(stage(world), content(world));
      const { code } = await world.rondo(['run', 'pay', '--input', '{}']);
      expect(world.count('A') === 0 && code !== 0, 'nothing to run', { code, ran: world.executed() });
    },
  })),
];
