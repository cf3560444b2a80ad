// Guards of retries, of the stacks of errors, and of steps that are not awaited.

import { kernelParts } from './library.js';
import { guardsOf, proveGuards } from './prove.js';
import { retryChecks } from './retry-checks.js';

const guard = guardsOf(retryChecks);

proveGuards(kernelParts, [
  guard('policy.retry', 'an outcome that repeating cannot change is not retried', 'final-outcome-not-retried', {
    take: 1,
  }),
  guard('turn.errors', 'the operator can omit stacks', 'stack-redacted-before-written', { value: 'stack' }),
  guard(
    'turn.retry',
    'a retry does not repeat an effect that was resolved as failed',
    'retried-effect-in-doubt-not-repeated',
    'always',
  ),
  guard('turn.retry', 'a root that has not ended is not reopened', 'only-ended-root-reopened', 'never'),
  guard('kernel.scope', 'a quick record that is not awaited is noticed', 'quick-record-outlasts-body', 'drop'),
  guard('kernel.scope', 'a quick call that is not awaited is noticed', 'quick-call-outlasts-body', 'never'),
  guard('kernel.scope', 'a refused step that is not awaited is noticed', 'refused-step-outlasts-body', 'drop'),
  guard('kernel.scope', 'a refused call that is not awaited is noticed', 'refused-call-outlasts-body', 'drop'),
  guard(
    'kernel.scope',
    'a record that nothing awaits is noticed, however long the body goes on',
    'unused-record-noticed',
    { take: 0 },
  ),
]);
