import { expect } from 'vitest';
import { verifies } from '../../spec/verifies.js';
import type { Entry } from '../protocol/entry.js';
import { type EntryTail, type FollowedEntries, followEntries } from './follow-entries.js';

const entry = (seq: number, key = `k${seq}`): Entry => ({ seq, at: 1000 + seq, key, type: 'x' });
const clock = { sleep: async () => undefined };

/** Follows a session that has these contents at each poll. Returns what the follower yields. */
async function follow(
  polls: readonly { readonly stored: number; readonly all: readonly Entry[] }[],
): Promise<FollowedEntries[]> {
  const controller = new AbortController();
  let poll = 0;
  const readTail = async (from: number): Promise<EntryTail> => {
    const { stored, all } = polls[poll] ?? { stored: 0, all: [] };
    return { stored: all.slice(from, stored), unstored: all.slice(Math.max(from, stored)) };
  };
  const followed: FollowedEntries[] = [];
  for await (const update of followEntries(readTail, clock, controller.signal)) {
    followed.push(update);
    if (++poll === polls.length) controller.abort();
  }
  return followed;
}

const keysOf = (followed: readonly FollowedEntries[]): unknown[] =>
  followed.map(({ entries, isRestart }) => [isRestart, ...entries.map(({ key }) => key)]);

verifies('turn.follow', 'each entry is delivered once, before and after it is stored', async () => {
  const [a, b, c, d] = [entry(0), entry(1), entry(2), entry(3)];
  const followed = await follow([
    { stored: 1, all: [a, b] },
    { stored: 1, all: [a, b, c] },
    { stored: 1, all: [a] },
    { stored: 3, all: [a, b, c] },
    { stored: 4, all: [a, b, c, d] },
  ]);
  expect(keysOf(followed)).toEqual([[false, 'k0', 'k1'], [false, 'k2'], [false], [false], [false, 'k3']]);
});

verifies('turn.follow', 'entries that were never stored are replaced by those of the next process', async () => {
  const [a, b, c] = [entry(0), entry(1), entry(2)];
  const other = entry(1, 'other');
  const followed = await follow([
    { stored: 1, all: [a, b, c] },
    { stored: 2, all: [a, other] },
    { stored: 3, all: [a, other, c] },
  ]);
  expect(keysOf(followed)).toEqual([
    [false, 'k0', 'k1', 'k2'],
    [true, 'k0', 'other'],
    [false, 'k2'],
  ]);
});
