// Guards of approvals and standing grants.

import { approvalChecks } from './approval-checks.js';
import { hostParts } from './library.js';
import { guardsOf, proveGuards } from './prove.js';

const guard = guardsOf(approvalChecks);

proveGuards(hostParts, [
  guard('approval.gate', 'an approval does not unblock a blocked tool', 'unknown-policy-blocks', 'drop'),
  guard('approval.bound', 'the description of a call cannot change its arguments', 'description-gets-a-copy', {
    take: 0,
  }),
  guard('approval.bound', 'an approval covers only the approved arguments', 'approval-bound-to-arguments', 'never'),
  guard('approval.bound', 'an approval covers only the approved definition', 'approval-bound-to-definition', 'never'),
  guard('identity.build', 'an approval covers only the build that requested it', 'approval-bound-to-build', 'never'),
  guard('approval.bound', 'an expired approval that bypasses the host is refused', 'late-approval-refused', 'never'),
  guard('approval.once', 'a denied tool does not run', 'denied-call-refused', 'never'),
  guard('approval.once', 'a second answer is refused', 'second-answer-refused', 'drop'),
  guard('approval.once', 'an answer to an ended turn is refused', 'answer-to-ended-turn-refused', { take: 1 }),
  guard('approval.bound', 'an answer is accepted only for its own call', 'answer-bound-to-its-call', 'never'),
  guard('approval.forged', 'an agent cannot approve its own call', 'agent-cannot-answer', 'never'),
  guard('approval.forged', 'an agent cannot approve its own call', 'name-of-answerer-normalized', { take: 0 }),
  guard('approval.forged', 'only a named approver can answer', 'only-approvers-answer', 'never'),
  guard('approval.bound', 'an expired approval takes no answer', 'expired-approval-takes-no-answer', 'never'),
  guard('approval.forged', 'a signal cannot answer an approval', 'approval-signal-reserved', 'never'),
  guard('approval.forged', 'an answer is read only once', 'answer-read-once', { take: 0 }),
  guard('approval.forged', 'a refused answer is recorded', 'refused-answer-recorded', 'drop'),
  guard('approval.standing', 'a standing grant without limits is refused', 'grant-limits-an-argument', 'always'),
  guard('approval.standing', 'a denial cannot become a standing grant', 'denial-is-no-grant', 'drop'),
  guard('approval.gate', 'an outer agent cannot loosen the policy of an inner one', 'stricter-policy-wins', {
    take: 1,
  }),
  guard('approval.gate', 'the policy of an agent applies to its tools', 'agent-policy-applies-to-tools', { take: 1 }),
  guard(
    'approval.gate',
    'a policy covers the tools inside of the steps that it names',
    'policy-covers-calls-inside',
    'drop',
  ),
  guard(
    'approval.gate',
    'a policy covers the tools inside of steps that another process started',
    'recorded-calls-known-to-policy',
    'drop',
  ),
  guard('approval.gate', 'the policy of an agent applies to loops in code', 'policy-applies-to-code', 'always'),
  guard('approval.standing', 'a standing grant covers only its principal', 'grant-bound-to-principal', 'drop'),
  guard(
    'approval.standing',
    'a standing grant applies only where its giver may answer',
    'grant-giver-may-answer',
    'drop',
  ),
  guard('approval.standing', 'a standing grant covers only its definition', 'grant-bound-to-definition', 'drop'),
  guard('identity.build', 'a standing grant covers only its build', 'grant-bound-to-build', 'drop'),
  guard(
    'approval.standing',
    'a standing grant covers only calls that satisfy its predicate',
    'grant-predicate-holds',
    'always',
  ),
  guard('approval.standing', 'a body cannot record a grant for itself', 'grant-only-from-outside', 'drop'),
]);
