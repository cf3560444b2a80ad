// Guards of leaf calls: which calls are recorded together with their effect, and what their end records.

import { leafChecks } from './leaf-checks.js';
import { kernelParts } from './library.js';
import { guardsOf, proveGuards } from './prove.js';

const guard = guardsOf(leafChecks);

proveGuards(kernelParts, [
  guard(
    'kernel.scope',
    'the effect of a leaf call cannot start steps of its scope',
    'leaf-scope-refuses-steps',
    'drop',
  ),
  guard(
    'kernel.invariant',
    'an invariant can refuse the effect of a leaf call',
    'invariants-check-effect-of-leaf',
    'never',
  ),
  guard('kernel.layer', 'layers wrap the effect of a leaf call', 'layered-effect-is-no-leaf', 'never'),
  guard(
    'kernel.leaf',
    'a leaf call whose input is changed by its validation performs the changed input',
    'leaf-effect-has-recorded-input',
    'never',
  ),
  guard(
    'kernel.cancel',
    'the effect of a cancelled leaf call is recorded when it ends, and the call is not ended twice',
    'late-end-of-leaf-recorded-as-effect',
    'never',
  ),
  guard(
    'kernel.cancel',
    'a cancel after the end of a leaf call does not change its outcome',
    'recorded-end-of-leaf-kept',
    'always',
  ),
  guard('kernel.leaf', 'a leaf call records everything that its effect returned', 'leaf-records-whole-result', 'never'),
  guard(
    'kernel.leaf',
    'the output of a leaf call is the one that its validation returns',
    'changed-output-of-leaf-recorded',
    'never',
  ),
]);
