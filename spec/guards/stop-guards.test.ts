// Guards of stops, refusals, shared streams and budgets.

import { guardsOf, proveGuards } from './prove.js';
import { stopChecks, stopParts } from './stop-checks.js';

const guard = guardsOf(stopChecks);

proveGuards(stopParts, [
  guard('grant.tools', 'every effect is admitted before it is performed', 'every-attempt-admitted', 'always'),
  guard('grant.budget', 'a run that is stopped admits nothing more', 'ended-run-admits-nothing', {
    rewrite: [/this\.isOver \? undefined : /, ''],
  }),
  guard('grant.tools', 'a refusal is recorded', 'refused-attempt-recorded', 'drop'),
  guard('grant.tools', 'an interrupted effect is admitted again before it is repeated', 'repeated-attempt-admitted', {
    value: 'effect',
  }),
  guard(
    'grant.budget',
    'a stop is recorded after the effects in flight have ended',
    'stopped-root-awaits-effects',
    'drop',
  ),
  guard(
    'receipt.sealed',
    'a turn with receipts has not ended before its receipt',
    'unsealed-turn-has-not-ended',
    'never',
  ),
  guard('receipt.sealed', 'a turn is sealed after the effects in flight have ended', 'sealed-after-effects', 'drop'),
  guard(
    'grant.budget',
    'an effect that was not performed has no recorded end',
    'unperformed-attempt-has-no-end',
    'never',
  ),
  guard('grant.budget', 'a root that is stopped at its own effect can continue', 'stopped-root-has-started', 'never'),
  guard('grant.budget', 'a root that has ended is not stopped', 'ended-root-not-stopped', 'never'),
  guard(
    'grant.shared',
    'a writer whose append is stale decides again on what others wrote',
    'stale-append-decided-again',
    'always',
  ),
  guard('grant.shared', 'a recovery does not repeat an append that is under way', 'recovery-waits-for-appends', 'drop'),
  guard(
    'grant.shared',
    'a decision without entries is final with those before it',
    'empty-decision-waits-for-earlier',
    'drop',
  ),
  guard('grant.shared', 'a decision during a recovery is applied once', 'loaded-state-decided-at-once', {
    rewrite: [/;$/, '; await undefined;'],
  }),
  guard('grant.shared', 'a stream that others extended is not short', 'short-stream-read-again', 'never'),
  guard('grant.shared', 'a snapshot of other entries is not used', 'stream-snapshot-matches', 'never'),
  guard('grant.shared', 'a snapshot contains only what is durable', 'stream-snapshot-is-durable', 'never'),
  guard('grant.budget', 'a reservation stays within the limit', 'reservation-within-limit', 'never'),
  guard('grant.budget', 'what was used replaces what was reserved', 'settled-counters-replaced', 'drop'),
  guard('grant.budget', 'a reservation is settled once', 'reservation-settled-once', 'never'),
  guard(
    'grant.budget',
    'an interrupted attempt stays charged when a later one is answered',
    'interrupted-attempt-stays-charged',
    'always',
  ),
  guard('grant.budget', 'input that a reply does not report stays charged', 'unreported-input-stays-charged', {
    rewrite: [/reserved\.inputTokens \?\? 0/, '0'],
  }),
]);
