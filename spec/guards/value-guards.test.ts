// Guards of values, entries and snapshots.

import { kernelParts } from './library.js';
import { guardsOf, proveGuards } from './prove.js';
import { valueChecks } from './value-checks.js';

const guard = guardsOf(valueChecks);

proveGuards(kernelParts, [
  guard('kernel.value', 'a later change to a value does not change the journal', 'journaled-value-copied', { take: 1 }),
  guard('kernel.value', 'a value that is not JSON is refused', 'number-is-finite', 'never'),
  guard('kernel.value', 'a value that is not JSON is refused', 'class-instance-refused', 'never'),
  guard('kernel.value', 'a value that is not JSON is refused', 'value-depth-bounded', 'never'),
  guard('kernel.value', 'the key __proto__ is refused', 'proto-key-refused', 'never'),
  guard('kernel.depth', 'unbounded recursion is refused', 'call-depth-bounded', { value: '500' }),
  guard('kernel.blob', 'a large value that was altered in the store is refused', 'blob-matches-digest', 'drop'),
  guard('kernel.invariant', 'an entry that violates an invariant is not written', 'entry-keeps-invariants', 'drop'),
  guard('kernel.version', 'an entry of a newer version is refused', 'newer-entry-refused', 'never'),
  guard('kernel.snapshot', 'the cost of snapshots stays bounded as a session grows', 'snapshot-interval-grows', 'drop'),
  guard('kernel.snapshot', 'a snapshot that does not match the journal is ignored', 'snapshot-matches-journal', 'drop'),
  guard('kernel.invariant', 'a replay repeats the refusal of an invariant', 'invariant-refusal-recorded', 'always'),
  guard('kernel.value', 'an effect receives the arguments that were journaled', 'effect-gets-journaled-input', {
    rewrite: [/await (\w+)\.(\w+)\(\w+\(\w+\.(\w+)\)/, 'await $1.$2($1.$3'],
  }),
]);
