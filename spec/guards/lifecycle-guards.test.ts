// Guards of the lifecycle of runs, branches, timers and scopes.

import { kernelParts } from './library.js';
import { lifecycleChecks } from './lifecycle-checks.js';
import { guardsOf, proveGuards } from './prove.js';

const guard = guardsOf(lifecycleChecks);

proveGuards(kernelParts, [
  guard('kernel.cancel', 'a cancelled run does not resume an effect in doubt', 'cancel-checked-before-effect', 'drop'),
  guard('kernel.cancel', 'a cancellation survives a restart', 'recorded-cancel-applied', 'never'),
  guard('kernel.cancel', 'a cancelled run ends, even if its code has changed', 'cancelled-root-ends', 'never'),
  guard(
    'kernel.cancel',
    'the result of an effect that ends after a cancellation is recorded',
    'effects-in-flight-awaited',
    'never',
  ),
  guard('kernel.race', 'a replayed race returns the recorded winner', 'recorded-winner-returned', 'never'),
  guard('kernel.race', 'a race ends the branches that lost', 'losing-branch-ended', 'drop'),
  guard(
    'kernel.parallel',
    'all throws the error of the first failed branch by position, not by time',
    'first-error-by-place',
    { rewrite: [/\w+ < (\w+)\.\w+(.*?)(\w+):/, '$1.$3 === undefined$2$3:'] },
  ),
  guard('kernel.parallel', 'a scope refuses concurrent steps', 'one-step-at-a-time', 'never'),
  guard('kernel.parallel', 'a body cannot end while one of its steps runs', 'body-ends-after-its-steps', 'drop'),
  guard('kernel.timer', 'a timer keeps its end across a restart', 'timer-end-recorded', { take: 1 }),
  guard('kernel.timer', 'a timer never fires early', 'timer-waits-until-due', 'never'),
  guard('kernel.signal', 'a returned signal keeps its place before later ones', 'returned-signal-keeps-its-place', {
    value: 'Infinity',
  }),
  guard(
    'kernel.signal',
    'a branch that lost returns the signal that it received',
    'losing-branch-returns-its-signal',
    'drop',
  ),
  guard(
    'kernel.signal.address',
    'a signal is kept for the root that it is addressed to',
    'addressed-signal-kept-for-its-root',
    { value: "''" },
  ),
  guard(
    'kernel.signal.address',
    'a signal wakes only the root that it is addressed to',
    'signal-wakes-its-root-only',
    'always',
  ),
  guard(
    'kernel.signal.address',
    'the older of an addressed and an unaddressed signal is received first',
    'oldest-signal-first',
    'never',
  ),
  guard('kernel.signal.address', 'an ended root refuses signals', 'ended-turn-refuses-signals', 'always'),
  guard('kernel.signal.type', 'a wait discards a payload that its schema refuses', 'invalid-signal-discarded', {
    value: 'undefined',
  }),
  guard('kernel.cancel', 'a body that ignores its cancellation is abandoned', 'uncooperative-body-abandoned', 'drop'),
  guard('kernel.parallel', 'a scope refuses steps once its body has ended', 'closed-scope-refuses-steps', 'drop'),
  guard('kernel.cancel', 'a cancelled run starts no further effect', 'ended-lifetime-refuses-work', 'drop'),
  guard('kernel.cancel', 'concurrent effects have separate abort signals', 'idle-signal-borrowed-once', {
    rewrite: [/\.pop\(\)/, '[0]'],
  }),
  guard('kernel.cancel', 'a reused abort signal still reports a cancellation', 'idle-signal-stays-connected', {
    rewrite: [/(\?\.\w+\(\);)( if \((this\.\w+) )/, '$1 $3$1$2'],
  }),
]);
