// A command swaps a directory for a link that leads out while the sandbox of another command is set up. What is mounted there must
// be what was judged, so the second command must see nothing from outside.

import { existsSync, mkdirSync, readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { expect, sleep } from '../../support/store-attack.mjs';

const OUTSIDE = 'Xv3-outside-of-all-roots';

const exchange = (one, other) => `python3 -c "
import ctypes, time
c = ctypes.CDLL(None)
ends = time.time() + 20
while time.time() < ends: c.renameat2(-100, b'${one}', -100, b'${other}', 2)"`;

/** What the first command does, the roots of both, and where the second one looks. */
const ways = {
  /** A store among other files: what does not belong to it is mounted back, entry by entry. */
  'shared-entry': ({ root, outside }) => ({
    first: `mkdir -p x/e && touch x/f x/f.anchor && ln -s ${dirname(outside)} l && ${exchange(`${root}/x/e`, `${root}/l`)}`,
    second: 'cat x/e/secret.txt && echo changed >> x/e/secret.txt',
  }),
  /** The same, with a link to the data directory. */
  'shared-entry-data': ({ root }) => ({
    first: `mkdir -p x/e && touch x/f x/f.anchor && ln -s ${root}/.rondo l && ${exchange(`${root}/x/e`, `${root}/l`)}`,
    second: 'cat x/e/secret.txt && echo changed >> x/e/secret.txt',
  }),
  /** A data directory below others: the directories above it are mounted. */
  'parent-of-data': ({ root, outside }) => ({
    first: `mkdir -p a/b/d && touch a/b/d/.rondo-data && mkdir -p l0 && ln -s ${dirname(outside)} l && ${exchange(`${root}/a/b`, `${root}/l`)}`,
    second: 'cat a/b/secret.txt && echo changed >> a/b/secret.txt',
  }),
  /** The root of one tool lies in the root of another. */
  'root-in-root': ({ root, outside }) => ({
    first: `mkdir -p s && ln -s ${dirname(outside)} l && ${exchange(`${root}/s`, `${root}/l`)}`,
    second: 'cat secret.txt && echo changed >> secret.txt',
    roots: [join(root, 's')],
  }),
  /** The directory in which the second command begins. */
  directory: ({ root, outside }) => ({
    first: `mkdir -p s && ln -s ${dirname(outside)} l && ${exchange(`${root}/s`, `${root}/l`)}`,
    second: 'cat secret.txt && echo changed >> secret.txt',
    directory: 's',
  }),
};

async function swapped(fixture, way) {
  const root = join(fixture.folder, 'w');
  mkdirSync(join(root, 's'), { recursive: true });
  const outside = fixture.file('out/secret.txt', `${OUTSIDE}\n`);
  const own = fixture.file('w/.rondo/secret.txt', `${OUTSIDE}\n`);
  const { first, second, roots = [root], directory } = way({ root, outside });
  const host = await fixture.host();
  const other = await fixture.host();
  const going = host.command(first, { roots: [root], input: { timeoutSeconds: 25 } });
  going.catch(() => undefined);
  await sleep(1500);
  const tally = { ran: 0, refused: 0 };
  for (let n = 0; n < 25; n++) {
    const input = directory === undefined ? {} : { directory };
    const { ok } = await other.command(second, { roots, input });
    tally[ok === undefined ? 'refused' : 'ran'] += 1;
    expect(!ok?.output.includes(OUTSIDE), 'nothing from outside', { attempt: n, output: ok?.output });
  }
  for (const file of [outside, own])
    expect(existsSync(file) && readFileSync(file, 'utf8') === `${OUTSIDE}\n`, `${file} as before`, tally);
  await going;
}

export function cases() {
  return Object.entries(ways).map(([name, way]) => ({
    id: `sandbox.swap.${name}`,
    run: (fixture) => swapped(fixture, way),
  }));
}
