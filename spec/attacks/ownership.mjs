// Attacks on how several processes share one store. See README.md.

import { Stage } from '../support/store-attack.mjs';
import { runAttacks } from './runner.mjs';

/** Cases that mostly wait are run beside the others. */
const WAITING_LANES = 8;

const modules = ['strangers', 'insiders', 'false-owner', 'planted', 'gone', 'limits', 'users', 'records', 'owners'];

await runAttacks({
  areas: ['ownership', 'takeover', 'socket', 'files'],
  modules: [...modules, 'crashes', 'kills', 'verbs', 'tools', 'lives'],
  caseMs: 60_000,
  subject: (seed, id) => new Stage(seed, id),
  lanes: (cases) => {
    const waiting = cases.filter(({ waits }) => waits === true);
    const busy = cases.filter(({ waits }) => waits !== true);
    return [busy, ...Array.from({ length: WAITING_LANES }, () => waiting)];
  },
});
