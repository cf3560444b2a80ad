// The operator's trust file: permissions, location and content.

import { execFileSync } from 'node:child_process';
import { chmodSync, chownSync, linkSync, mkdirSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { expect } from './fixture.mjs';

/** @typedef {import('./fixture.mjs').AuthorityFixture} AuthorityFixture */

const OTHER_UID = 54_321;

/**
 * Defines a tool and writes a trust file for the project; returns the path of the trust file.
 * @param {AuthorityFixture} fixture
 */
function writeTrustFile(fixture) {
  fixture.write('loops/tool.sh', fixture.shell('A'), 0o755);
  fixture.define('pay', { tool: { implementation: 'exec:./tool.sh' } });
  const file = join(fixture.home, '.config/rondo/trust.toml');
  mkdirSync(dirname(file), { recursive: true, mode: 0o755 });
  writeFileSync(file, `directories = ["${fixture.project}"]\n`, { mode: 0o600 });
  return file;
}

/**
 * Changes a trust file or its location. Returns further environment variables.
 * @typedef {(fixture: AuthorityFixture, file: string) => Record<string, string | undefined> | void} Change
 */

/** Changes, and whether the file is still accepted. @type {Record<string, [isAccepted: boolean, change: Change]>} */
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
  'owner-stranger': [false, (_, file) => chownSync(file, OTHER_UID, OTHER_UID)],
  'directory-of-a-stranger': [false, (_, file) => chownSync(dirname(file), OTHER_UID, OTHER_UID)],
  'link-to-a-project-file': [
    false,
    (fixture, file) => {
      rmSync(file);
      symlinkSync(fixture.write('.trust.toml', `directories = ["${fixture.project}"]\n`, 0o600), file);
    },
  ],
  'directory-linked-to-the-project': [
    false,
    (fixture, file) => {
      rmSync(dirname(file), { recursive: true });
      fixture.write('rondo/trust.toml', `directories = ["${fixture.project}"]\n`, 0o600);
      symlinkSync(fixture.path('rondo'), dirname(file));
    },
  ],
  'link-to-a-writable-file': [
    false,
    (fixture, file) => {
      rmSync(file);
      const open = join(fixture.outside, 't.toml');
      writeFileSync(open, `directories = ["${fixture.project}"]\n`);
      chmodSync(open, 0o666);
      symlinkSync(open, file);
    },
  ],
  'link-in-a-writable-directory': [
    false,
    (fixture, file) => {
      rmSync(file);
      const open = join(fixture.outside, 't.toml');
      writeFileSync(open, `directories = ["${fixture.project}"]\n`, { mode: 0o600 });
      chmodSync(fixture.outside, 0o777);
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
    (fixture) => {
      fixture.write('h/.config/rondo/trust.toml', `directories = ["${fixture.project}"]\n`, 0o600);
      return { HOME: fixture.path('h') };
    },
  ],
  'home-is-the-project': [
    false,
    (fixture) => {
      fixture.write('.config/rondo/trust.toml', `directories = ["${fixture.project}"]\n`, 0o600);
      return { HOME: fixture.project };
    },
  ],
  'xdg-in-the-project': [
    false,
    (fixture) => {
      fixture.write('x/rondo/trust.toml', `directories = ["${fixture.project}"]\n`, 0o600);
      return { XDG_CONFIG_HOME: fixture.path('x') };
    },
  ],
  'xdg-linked-to-the-project': [
    false,
    (fixture) => {
      fixture.write('x/rondo/trust.toml', `directories = ["${fixture.project}"]\n`, 0o600);
      symlinkSync(fixture.path('x'), join(fixture.base, 'x'));
      return { XDG_CONFIG_HOME: join(fixture.base, 'x') };
    },
  ],
  'xdg-with-dots': [
    false,
    (fixture) => {
      fixture.write('x/rondo/trust.toml', `directories = ["${fixture.project}"]\n`, 0o600);
      return { XDG_CONFIG_HOME: `${fixture.outside}/../work/project/x` };
    },
  ],
  'xdg-relative-is-ignored': [
    true,
    (fixture) => {
      fixture.write('x/rondo/trust.toml', 'directories = []\n', 0o600);
      return { XDG_CONFIG_HOME: 'x' };
    },
  ],
  'xdg-empty-is-ignored': [true, () => ({ XDG_CONFIG_HOME: '' })],
  'xdg-elsewhere': [false, (fixture) => ({ XDG_CONFIG_HOME: fixture.outside })],
  'appdata-in-the-project': [
    false,
    (fixture) => {
      fixture.write('x/rondo/trust.toml', `directories = ["${fixture.project}"]\n`, 0o600);
      return { APPDATA: fixture.path('x'), HOME: undefined };
    },
  ],
  'config-directory-holds-it': [
    false,
    (fixture, file) => {
      writeFileSync(join(fixture.home, 'rondo.toml'), '');
      return { RONDO_CONFIG: join(fixture.home, 'rondo.toml'), FILE: file };
    },
  ],
  'data-directory-holds-it': [false, (fixture) => ({ RONDO_DATA: join(fixture.home, '.config') })],
  'loops-directory-holds-it': [
    false,
    (fixture) => {
      execFileSync('cp', ['-a', `${fixture.path('loops')}/.`, join(fixture.home, '.config')]);
      return { RONDO_LOOPS: join(fixture.home, '.config') };
    },
  ],
  'hard-link-to-a-project-file': [
    true,
    (fixture, file) => {
      rmSync(file);
      linkSync(fixture.write('.t', `directories = ["${fixture.project}"]\n`, 0o600), file);
    },
  ],
};

/**
 * Contents that do not trust the project: they are invalid or name another directory.
 * @type {Record<string, (fixture: AuthorityFixture) => string>}
 */
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

/** @returns {import('../runner.mjs').Case[]} */
export const cases = () => [
  ...Object.entries(STATES).map(([name, [isAccepted, change]]) => ({
    id: `trust.file.${name}`,
    run: async (/** @type {AuthorityFixture} */ fixture) => {
      const file = writeTrustFile(fixture);
      const env = change(fixture, file) ?? {};
      const { code, stderr } = await fixture.rondo(['run', 'pay', '--input', '{}'], { env });
      const ran = fixture.count('A');
      expect(ran === (isAccepted ? 1 : 0), isAccepted ? 'the file to be accepted' : 'the file not to be accepted', {
        ran,
        code,
        stderr,
      });
    },
  })),
  ...Object.entries(CONTENTS).map(([name, content]) => ({
    id: `trust.content.${name}`,
    run: async (/** @type {AuthorityFixture} */ fixture) => {
      writeFileSync(writeTrustFile(fixture), content(fixture));
      const { code } = await fixture.rondo(['run', 'pay', '--input', '{}']);
      expect(fixture.count('A') === 0 && code !== 0, 'nothing to run', { code, ran: fixture.executed() });
    },
  })),
];
