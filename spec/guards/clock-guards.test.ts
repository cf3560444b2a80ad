// Guards of time and of policies.

import { clockChecks, clockParts } from './clock-checks.js';
import { guardsOf, proveGuards } from './prove.js';

const guard = guardsOf(clockChecks);

proveGuards(clockParts, [
  guard('time.monotonic', 'setting the wall clock back does not stall a sleep', 'sleep-measured-monotonically', {
    rewrite: [/(\w+), (\w+)/, '$1, $1: $2'],
  }),
  guard('time.monotonic', 'setting the wall clock forward does not end a sleep early', 'sleep-measured-monotonically', {
    rewrite: [/(\w+), (\w+)/, '$1, $1: $2'],
  }),
  guard(
    'time.monotonic',
    'resuming a run in the same process does not end a sleep early',
    'running-period-remembered',
    { take: 0 },
  ),
  guard('time.restart', 'a sleep never exceeds its length after a restart', 'remaining-period-bounded', { take: 1 }),
  guard('time.restart', 'a worker notices that the clock was set back', 'set-back-clock-noticed', 'never'),
  guard('time.restart', 'a worker notices that the clock was set back', 'due-time-follows-wall-clock', {
    value: 'this.recordedEnd',
  }),
  guard('policy.applies', 'a policy without effect is refused', 'ineffective-policy-refused', 'drop'),
  guard('policy.applies', 'a policy without effect is refused for a loop in code', 'form-of-code-loop-known', {
    value: "'prompt'",
  }),
  guard('policy.backend', 'a backend whose open throws is replaced by the fallback', 'backend-open-error-caught', {
    take: 0,
  }),
  guard(
    'policy.backend',
    'a backend whose open rejects is replaced by the fallback',
    'backend-open-rejection-caught',
    'drop',
  ),
]);
