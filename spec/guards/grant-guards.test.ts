// Guards of grants: documents, derivation, admission, budgets and confinement.

import { grantChecks, grantParts } from './grant-checks.js';
import { guardsOf, proveGuards } from './prove.js';

const guard = guardsOf(grantChecks);

proveGuards(grantParts, [
  guard('grant.document', 'an unknown member of a grant is refused', 'unknown-grant-member-refused', {
    value: 'undefined',
  }),
  guard('grant.document', 'a rule for a tool that is not permitted is refused', 'rule-for-permitted-name', 'always'),
  guard('grant.document', 'a rule for a tool that does not exist opens no turn', 'rule-for-known-loop', 'always'),
  guard('grant.document', 'only the operator may permit all tools', 'bare-wildcard-is-the-operators', {
    rewrite: [/mayBeAny/, 'true'],
  }),
  guard('grant.tools', 'a wildcard stands for one segment', 'pattern-covers-one-segment', { value: 'true' }),
  guard('grant.tools', 'a tool that is not listed is not admitted', 'only-allowed-tools-admitted', 'never'),
  guard('grant.review', 'a blocked tool is not admitted', 'blocked-review-refuses', 'never'),
  guard('grant.tools', 'a tool whose scope is not granted is not admitted', 'scopes-of-tool-granted', 'never'),
  guard('grant.tools', 'a tool with other arguments is not admitted', 'arguments-satisfy-grant', 'drop'),
  guard('grant.confined', 'a tool that nothing confines is not admitted', 'unconfined-effect-listed', 'always'),
  guard('grant.derive', 'a derived list contains nothing else', 'derived-list-covered', 'drop'),
  guard('grant.derive', 'a derived list contains nothing else', 'wider-grant-refused', 'always'),
  guard('grant.derive', 'a derived limit is not higher', 'derived-limit-not-above', 'never'),
  guard('grant.derive', 'a derived grant does not end later', 'derived-grant-expires-no-later', 'never'),
  guard('grant.tools', 'an answer from a cache is admitted', 'cached-answer-admitted', 'drop'),
  guard('grant.shared', 'an effect starts only if its reservation is durable', 'effect-waits-for-reservation', {
    rewrite: [/isReserved === false/, 'isReserved === null'],
  }),
  guard('grant.shared', 'a turn opens only if it is counted durably', 'turn-counted-before-it-opens', 'always'),
  guard('grant.budget', 'an expired grant opens no turn', 'expired-grant-opens-no-turn', 'never'),
  guard('grant.budget', 'a turn stops when its grant expires', 'expired-grant-stops-turn', 'always'),
  guard('grant.budget', 'one grant id has one content', 'grant-id-has-one-content', 'always'),
  guard('grant.budget', 'no effect is deeper than permitted', 'nesting-within-grant', 'never'),
  guard('grant.budget', 'a model that uses more than it may stops the turn', 'overrun-stops-turn', {
    value: 'undefined',
  }),
  guard('grant.budget', 'a model is told how much it may write', 'output-limited-to-reservation', { value: 'request' }),
  guard('grant.budget', 'a reply that is cut at its limit is not recorded', 'stream-aborted-at-limit', 'drop'),
  guard(
    'grant.budget',
    'a model without a price does not run under a limit of money',
    'unpriced-model-refused',
    'always',
  ),
  guard('grant.budget', 'a repeated attempt is not counted again', 'repeated-attempt-not-counted-again', {
    rewrite: [/attempt === 0/, 'true'],
  }),
  guard('grant.budget', 'a tool round is limited', 'round-paid-with-its-effect', {
    rewrite: [/isNewRound \? .* : amounts/, 'amounts'],
  }),
  guard('grant.budget', 'a turn that has ended is not counted again', 'ended-turn-not-counted', {
    rewrite: [/start\.hasEnded === true/, 'false'],
  }),
  guard(
    'grant.budget',
    'a model call that never began gives its reservation back',
    'unperformed-call-released',
    'drop',
  ),
  guard('grant.review', 'a review of the grant asks a person', 'review-of-grant-applies', { value: 'rule' }),
  guard('grant.review', 'only an approver of the grant may answer', 'approvers-of-grant-apply', { value: 'undefined' }),
  guard('grant.budget', 'a turn is attached to under its own grant only', 'attached-turn-has-same-grant', 'always'),
  guard('grant.budget', 'only a turn that stopped gets another grant', 'only-stopped-turn-gets-grant', 'always'),
  guard('grant.confined', 'a body in code that nothing confines does not run', 'unconfined-body-admitted', {
    value: 'false',
  }),
  guard(
    'grant.tools',
    'a loop that a model chooses must be permitted, also one that is no tool',
    'chosen-loop-admitted',
    'never',
  ),
  guard(
    'grant.tools',
    'a loop that a model chooses must be permitted, also one that is no tool',
    'chosen-composite-admitted',
    { value: 'false' },
  ),
  guard('receipt.store', 'a closed session runs nothing', 'closed-session-runs-nothing', 'always'),
  guard('grant.confined', 'a file outside of the roots of the grant is not opened', 'opened-path-inside-grant', {
    take: 1,
  }),
  guard('grant.confined', 'a page of another host is not fetched', 'fetched-host-granted', 'drop'),
  guard('grant.confined', 'a command that cannot be confined does not run', 'command-confined-to-grant', 'always'),
  guard('grant.confined', 'nothing is sent to another host', 'posted-host-granted', 'drop'),
]);
