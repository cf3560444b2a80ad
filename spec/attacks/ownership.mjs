// Attacks on a SQLite store that several processes share. See README.md.

import { StoreFixture } from '../support/store-attack.mjs';
import { runAttacks } from './runner.mjs';

/** The number of lanes for cases that mostly wait. They run in parallel with the lane of the other cases. */
const WAITING_LANES = 8;

const socketModules = ['unauthenticated-peers', 'authenticated-peers', 'false-owner'];
const fileModules = ['planted-files', 'changed-files', 'limits', 'users', 'owner-files', 'multiple-owners'];
const takeoverModules = ['crashes', 'kills', 'verbs', 'tools', 'owner-changes'];

/** Cases that are known to fail; README.md says why. */
const known = [
  'takeover.descriptors.owner',
  'files.exhausted-first.3',
  'files.exhausted-first.4',
  'files.descriptors.26.0',
  'files.descriptors.32.20',
];

await runAttacks({
  known,
  areas: ['ownership', 'takeover', 'socket', 'files'],
  modules: [...socketModules, ...fileModules, ...takeoverModules],
  caseMs: 60_000,
  subject: (seed, id) => new StoreFixture(seed, id),
  lanes: (cases) => {
    const waiting = cases.filter(({ waits }) => waits === true);
    const busy = cases.filter(({ waits }) => waits !== true);
    return [busy, ...Array.from({ length: WAITING_LANES }, () => waiting)];
  },
});
