// Guards of the kernel: recording, replay, effects, faults and signals.

import { kernelChecks } from './kernel-checks.js';
import { kernelParts } from './library.js';
import { guardsOf, proveGuards } from './prove.js';

const guard = guardsOf(kernelChecks);

proveGuards(kernelParts, [
  guard('kernel.ack', 'a result is durable before it is reported', 'result-durable-before-reported', 'drop'),
  guard(
    'kernel.intent',
    'the intent of an external effect is durable before the effect starts',
    'intent-durable-before-effect',
    'never',
  ),
  guard(
    'kernel.repeated',
    'the repetition of an interrupted effect is durable before it starts',
    'repeated-start-recorded',
    'never',
  ),
  guard(
    'kernel.doubt',
    'a once effect is not repeated after a crash until it is resolved',
    'once-effect-in-doubt-not-repeated',
    'never',
  ),
  guard('kernel.once', 'a recorded result is never computed again', 'recorded-result-returned', 'drop'),
  guard('kernel.once', 'a finished run never runs again', 'finished-call-not-repeated', 'never'),
  guard('kernel.doubt', 'a repeated effect keeps its idempotency key', 'idempotency-key-bound-to-session', {
    value: 'Math.random()',
  }),
  guard(
    'kernel.doubt',
    'sessions that reuse a name use different idempotency keys',
    'idempotency-key-bound-to-session',
    { value: "''" },
  ),
  guard(
    'kernel.replay',
    'a replay rejects a step that differs from the recorded one',
    'replayed-step-matches-record',
    'never',
  ),
  guard(
    'kernel.replay',
    'a replay rejects an input that differs from the recorded one',
    'replayed-input-matches-record',
    'never',
  ),
  guard('kernel.replay', 'a replay rejects code that omits a recorded step', 'untaken-steps-refused', 'always'),
  guard('kernel.replay', 'a replay rejects a race in place of a recorded all', 'replayed-step-matches-record', 'never'),
  guard('kernel.fault', 'a body that catches a fault does not continue', 'body-stalled-after-fault', 'drop'),
  guard('kernel.fault', 'nothing is written after an append has failed', 'nothing-appended-after-fault', 'drop'),
  guard('kernel.signal', 'a signal that is delivered twice is received once', 'signal-delivered-once', 'never'),
  guard(
    'kernel.doubt',
    'a resolution is refused for an effect that is not in doubt',
    'resolution-needs-effect-in-doubt',
    'never',
  ),
  guard('kernel.pressure', 'a slow store does not grow the queue without bound', 'full-queue-awaited', 'drop'),
  guard('kernel.fence', 'a writer with a stale fence cannot append', 'stale-fence-refused', 'drop'),
  guard('kernel.fault', 'a body that outlives its attempt writes nothing', 'ended-attempt-writes-nothing', 'drop'),
  guard(
    'kernel.fault',
    'a replay performs no effect past the end of its record',
    'ended-attempt-starts-no-effect',
    'drop',
  ),
  guard(
    'kernel.close',
    'an effect whose intent is written when its session closes is performed, and not left in doubt',
    'ended-attempt-starts-no-effect',
    'always',
  ),
  guard('kernel.once', 'the next attempt joins an effect that is still in flight', 'effect-in-flight-joined', {
    value: 'undefined',
  }),
  guard('kernel.options', 'a misspelt session option is refused', 'unknown-option-refused', 'never'),
]);
