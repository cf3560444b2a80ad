// Guards of what an approval covers and of who asks, each with its broken twin.

import type { RequirementId } from '../requirements.js';
import { Workshop } from './library.js';
import { type Guard, proveGuards } from './prove.js';
import { type Acting, acting, targetChecks } from './target-checks.js';

function guard(
  id: RequirementId,
  disaster: keyof typeof targetChecks,
  file: string,
  from: string,
  to: string,
): Guard<Acting> {
  return { id, disaster, file, from, to, check: targetChecks[disaster] };
}

const guards: readonly Guard<Acting>[] = [
  guard(
    'approval.target',
    'a program that changed after its approval was requested does not run',
    'layers/approval.ts',
    'return next(boundTo(effect, request.target));',
    'return next();',
  ),
  guard(
    'approval.target',
    'a program that changes between the look before an attempt and its start does not run',
    'adapters/tools/exec.ts',
    'if (approved !== undefined)',
    'if (false)',
  ),
  guard(
    'approval.target',
    'a module runs with the bytes that were approved',
    'adapters/tools/module.ts',
    '?sha256=${sha256}&import=${imports}',
    '',
  ),
  guard(
    'approval.target',
    'a common module runs with the bytes that were approved',
    'adapters/tools/module.ts',
    'delete commonModules[file];',
    '',
  ),
  guard(
    'approval.target',
    'a file is written where it was approved, and nowhere else',
    'adapters/toolbox/roots.ts',
    'assertApproved(path, approved, join(opened.real, ...names));',
    '',
  ),
  guard(
    'approval.target',
    'a new file replaces nothing that was created since',
    'adapters/toolbox/change.ts',
    'assertNew(path, approved, present?.bytes, text);',
    '',
  ),
  guard(
    'approval.target',
    'a standing grant ends when its program changes',
    'layers/approval.ts',
    'coversTarget(given.target, target)',
    'true',
  ),
  guard(
    'approval.modes',
    "a sub-agent's mode does not cancel the ask of an enclosing agent",
    'host/gate.ts',
    'modes: [...modes, ...asking]',
    'modes: watches.modes(key)',
  ),
  guard(
    'approval.modes',
    'an inner mode does not cancel what an outer mode asks',
    'host/gate.ts',
    'return modes.length === 0 ? [undefined] : modes;',
    'return [modes[0]];',
  ),
  guard(
    'approval.default',
    'a tool that can say what to ask is asked about',
    'host/gate.ts',
    'effect.asksByDefault === true &&',
    'false &&',
  ),
  guard(
    'approval.default',
    'only the agent that has a tool allows it',
    'loops/agent/watch.ts',
    "ownOf(own.approvals, tool) === 'always_allow'",
    "policyOf(own, tool) === 'always_allow'",
  ),
  guard(
    'approval.limits',
    'a standing grant limits the value of an argument',
    'host/predicate.ts',
    '!accepts(validator, replaced(input, path, other))',
    'true',
  ),
  guard(
    'approval.limits',
    'a standing grant limits the value of an argument',
    'host/decisions.ts',
    'if (limitedArguments(standing, given).length > 0) return undefined;',
    'return undefined;',
  ),
  guard(
    'approval.limits',
    'a grant covers no call without an argument that it limits',
    'host/predicate.ts',
    '(limits ?? []).every((path) => limited.includes(path))',
    'true',
  ),
];

proveGuards(() => new Workshop<Acting>(acting), guards);
