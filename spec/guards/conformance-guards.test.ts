// Guards of the trace of code bodies and of the conformance suite.

import { conformanceChecks, conformanceParts } from './conformance-checks.js';
import { guardsOf, proveGuards } from './prove.js';

const guard = guardsOf(conformanceChecks);

proveGuards(conformanceParts, [
  guard('lsem.5.body', 'an effect of a code body is not traced as a tool', 'code-effect-is-no-tool', 'drop'),
  guard('lsem.5.body', 'a model call of a code body is not traced as a backend', 'code-effect-is-no-backend', {
    take: 1,
  }),
  guard('lsem.suite.known', 'a known failure that passes fails the run', 'fixed-known-failure-reported', { take: 0 }),
  guard('lsem.suite.known', 'a known failure does not count as a pass', 'known-failure-is-no-pass', {
    value: "'pass'",
  }),
  guard('lsem.suite.driver', 'an object without the methods of a runtime is rejected', 'runtime-shape-checked', 'drop'),
  guard('lsem.suite.text', 'a deeply nested event is accepted', 'deep-events-copied', {
    rewrite: [/\w+\((\w+)\)/, 'JSON.parse(JSON.stringify($1))'],
  }),
  guard('lsem.suite.text', 'a reused event object is recorded as it was', 'event-copied-when-recorded', { take: 0 }),
  guard('lsem.suite.text', 'events after the end of a call are awaited', 'late-events-awaited', 'drop'),
]);
