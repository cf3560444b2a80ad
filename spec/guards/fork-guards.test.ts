// Guards of forks.

import { forkChecks, forkParts } from './fork-checks.js';
import { guardsOf, proveGuards } from './prove.js';

const guard = guardsOf(forkChecks);

proveGuards(forkParts, [
  guard(
    'fork.effects',
    'an entry between the start and the end of an effect is refused',
    'fork-leaves-no-open-intent',
    'always',
  ),
  guard(
    'fork.approvals',
    'an entry between an answer and the end of its effect is refused',
    'fork-leaves-no-unused-answer',
    'never',
  ),
  guard(
    'fork.approvals',
    'an answer for a body as a whole is used until the body has ended',
    'approved-call-ends-with-its-body',
    'always',
  ),
  guard('fork.approvals', 'a retry of a fork does not use an answer of the original', 'retry-asks-again', 'drop'),
  guard('fork.grant', 'a fork has the grant of its turn, also one that is named after the turn', 'fork-keeps-grant', {
    value: 'renamed',
  }),
  guard('fork.effects', 'a turn that has ended at the entry is not forked', 'fork-point-checked', 'always'),
  guard('fork.effects', 'a fork has idempotency keys of its own', 'fork-incarnation-new', { value: "''" }),
  guard(
    'fork.effects',
    'a fork does not continue the other open turns of its session',
    'other-open-turns-end-in-fork',
    'drop',
  ),
]);
