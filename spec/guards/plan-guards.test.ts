// Guards of plans.

import { planChecks, planParts } from './plan-checks.js';
import { guardsOf, proveGuards } from './prove.js';

const guard = guardsOf(planChecks);

proveGuards(planParts, [
  guard(
    'plan.retry.once',
    'a plan that retries a once tool is refused at registration',
    'retried-once-tool-refused',
    'never',
  ),
  guard(
    'plan.retry.once',
    'a plan that retries a once tool which was registered later does not start',
    'retried-once-tool-not-started',
    'never',
  ),
  guard('plan.bounds', 'a plan stops at its limit of transitions', 'plan-transitions-bounded', 'never'),
  guard('plan.bounds', 'a plan stops at its limit of model calls', 'plan-model-turns-bounded', 'never'),
  guard('plan.bounds', 'a plan that runs the same action again and again stops', 'identical-actions-bounded', 'never'),
  guard('plan.states', 'a reply that is not exactly a state chooses none', 'decision-is-exactly-a-state', 'always'),
  guard('plan.conditions', 'file_exists finds no file outside of the project', 'file-exists-confined', 'never'),
  guard(
    'definition.load',
    'a workflow calls no workflow file outside of its directory',
    'inner-workflow-confined',
    'never',
  ),
]);
