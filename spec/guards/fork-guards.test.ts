// Guards of forks.

import { forkChecks, forkParts } from './fork-checks.js';
import { guardsOf, proveGuards } from './prove.js';

const guard = guardsOf(forkChecks);

proveGuards(forkParts, [
  guard(
    'fork.effects',
    'an entry between the start and the end of an effect is refused',
    'fork-leaves-no-open-intent',
    {
      take: 0,
    },
  ),
  guard('fork.effects', 'a turn that has ended at the entry is not forked', 'fork-point-checked', 'always'),
  guard('fork.effects', 'a fork has idempotency keys of its own', 'fork-incarnation-new', { value: "''" }),
  guard(
    'fork.effects',
    'a fork does not continue the other open turns of its session',
    'other-open-turns-end-in-fork',
    'drop',
  ),
]);
