// Each guard of time and of policies, and its broken twin: the check holds on the library as it is, and fails without the guard.

import type { RequirementId } from '../requirements.js';
import { clockChecks, type Timing, timing } from './clock-checks.js';
import { Workshop } from './library.js';
import { type Guard, proveGuards } from './prove.js';

function guard(
  id: RequirementId,
  disaster: keyof typeof clockChecks,
  file: string,
  from: string,
  to: string,
): Guard<Timing> {
  return { id, disaster, file, from, to, check: clockChecks[disaster] };
}

const MONOTONIC = 'clockOver({ now, elapsed, setTimeout';
const BY_WALL = 'clockOver({ now, now: elapsed, setTimeout';

const guards: readonly Guard<Timing>[] = [
  guard(
    'time.monotonic',
    'a wall clock that is set back stalls no sleep',
    'adapters/system/index.ts',
    MONOTONIC,
    BY_WALL,
  ),
  guard(
    'time.monotonic',
    'a wall clock that is set forward ends no sleep early',
    'adapters/system/index.ts',
    MONOTONIC,
    BY_WALL,
  ),
  guard(
    'time.monotonic',
    'a run that goes on in the same process ends no sleep early',
    'journal/period.ts',
    'begins ? undefined : ends.get(this.name)',
    'undefined',
  ),
  guard(
    'time.restart',
    'a sleep takes no longer than its length after a restart',
    'journal/period.ts',
    'Math.min(ms, Math.max(0, until - clock.now()))',
    'Math.max(0, until - clock.now())',
  ),
  guard(
    'policy.applies',
    'a policy without effect is refused',
    'loops/definition/definition.ts',
    'checkPolicyApplies(document, form ?? formOf(document), flaws);',
    '',
  ),
  guard(
    'policy.applies',
    'a policy without effect is refused in code',
    'loops/define.ts',
    "spec.tool === undefined ? 'code' : 'tool'",
    "'prompt'",
  ),
  guard(
    'policy.backend',
    'a backend whose open throws goes to the fallback',
    'loops/ask/effect.ts',
    'return fail(thrown);',
    'throw thrown;',
  ),
  guard(
    'policy.backend',
    'a backend whose open rejects goes to the fallback',
    'loops/ask/effect.ts',
    '.then(put, fail)',
    '.then(put)',
  ),
];

proveGuards(() => new Workshop<Timing>(timing), guards);
