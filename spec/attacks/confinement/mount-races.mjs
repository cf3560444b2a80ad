// Races during the set-up of a sandbox: one command exchanges a directory with a link to the outside while the sandbox
// of another command is set up. The sandbox must mount the directory that it checked, so the second command sees no
// file from outside.

import { existsSync, mkdirSync, readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { expect, sleep } from '../../support/store-attack.mjs';

/** The content of the files outside. */
const OUTSIDE = 'Xv3-outside-of-all-roots';

/** A command line that exchanges two names for 20 seconds. */
const exchange = (first, second) => `python3 -c "
import ctypes, time
c = ctypes.CDLL(None)
deadline = time.time() + 20
while time.time() < deadline: c.renameat2(-100, b'${first}', -100, b'${second}', 2)"`;

/** The two commands of each race, and the roots or the directory of the second. */
const races = {
  /** A store beside other files. The sandbox mounts each of the other files. */
  'shared-entry': ({ root, outside }) => ({
    first: `mkdir -p x/e && touch x/f x/f.anchor && ln -s ${dirname(outside)} l && ${exchange(`${root}/x/e`, `${root}/l`)}`,
    second: 'cat x/e/secret.txt && echo changed >> x/e/secret.txt',
  }),
  /** The same, with a link to the data directory. */
  'shared-entry-data': ({ root }) => ({
    first: `mkdir -p x/e && touch x/f x/f.anchor && ln -s ${root}/.rondo l && ${exchange(`${root}/x/e`, `${root}/l`)}`,
    second: 'cat x/e/secret.txt && echo changed >> x/e/secret.txt',
  }),
  /** A data directory in subdirectories. The sandbox mounts its parent directories. */
  'parent-of-data': ({ root, outside }) => ({
    first: `mkdir -p a/b/d && touch a/b/d/.rondo-data && mkdir -p l0 && ln -s ${dirname(outside)} l && ${exchange(`${root}/a/b`, `${root}/l`)}`,
    second: 'cat a/b/secret.txt && echo changed >> a/b/secret.txt',
  }),
  /** The root of the second command is in the root of the first. */
  'root-in-root': ({ root, outside }) => ({
    first: `mkdir -p s && ln -s ${dirname(outside)} l && ${exchange(`${root}/s`, `${root}/l`)}`,
    second: 'cat secret.txt && echo changed >> secret.txt',
    roots: [join(root, 's')],
  }),
  /** The working directory of the second command. */
  directory: ({ root, outside }) => ({
    first: `mkdir -p s && ln -s ${dirname(outside)} l && ${exchange(`${root}/s`, `${root}/l`)}`,
    second: 'cat secret.txt && echo changed >> secret.txt',
    directory: 's',
  }),
};

/** Runs the second command 25 times during the race. It neither prints nor changes a file from outside. */
async function checkRace(fixture, race) {
  const root = join(fixture.folder, 'w');
  mkdirSync(join(root, 's'), { recursive: true });
  const outside = fixture.file('out/secret.txt', `${OUTSIDE}\n`);
  const dataFile = fixture.file('w/.rondo/secret.txt', `${OUTSIDE}\n`);
  const { first, second, roots = [root], directory } = race({ root, outside });
  const host = await fixture.host();
  const other = await fixture.host();
  const exchanging = host.command(first, { roots: [root], input: { timeoutSeconds: 25 } });
  exchanging.catch(() => undefined);
  await sleep(1500);
  const counts = { ran: 0, refused: 0 };
  for (let n = 0; n < 25; n++) {
    const input = directory === undefined ? {} : { directory };
    const { ok } = await other.command(second, { roots, input });
    counts[ok === undefined ? 'refused' : 'ran'] += 1;
    expect(!ok?.output.includes(OUTSIDE), 'no content from outside', { attempt: n, output: ok?.output });
  }
  for (const file of [outside, dataFile])
    expect(existsSync(file) && readFileSync(file, 'utf8') === `${OUTSIDE}\n`, `${file} unchanged`, counts);
  await exchanging;
}

export function cases() {
  return Object.entries(races).map(([name, race]) => ({
    id: `sandbox.swap.${name}`,
    run: (fixture) => checkRace(fixture, race),
  }));
}
