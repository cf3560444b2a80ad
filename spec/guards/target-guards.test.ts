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
    'adapters/tools/approved-program.ts',
    'assertProgram(approved, program.target, named);',
    '',
  ),
  guard(
    'approval.target',
    'a module runs with the bytes that were approved',
    'adapters/tools/approved-source.ts',
    '?${DIGEST}=${sha256}&import=${number}',
    '',
  ),
  guard(
    'approval.bytes',
    'a program whose file changes while it is started never counts as the approved one',
    'adapters/tools/approved-program.ts',
    'await (looks[0] ?? look());',
    '',
  ),
  guard(
    'approval.bytes',
    'a program that goes on is stopped if its file changed while it was started',
    'adapters/tools/approved-program.ts',
    'looks[0]?.catch((error) => stopped.abort(error));',
    'looks[0]?.catch(() => undefined);',
  ),
  guard(
    'approval.bytes',
    'a program whose file was put back never counts as the approved one',
    'adapters/tools/program.ts',
    'return `${dev}:${ino}:${ctimeNs}`;',
    'return `${dev}:${ino}`;',
  ),
  guard(
    'approval.bytes',
    'a program whose file is changed without end is not started',
    'adapters/tools/program.ts',
    'if (age >= SETTLED_MS) return program;',
    'return program;',
  ),
  guard(
    'approval.bytes',
    'nothing of a module runs if its file changes before Node reads it',
    'adapters/tools/approved-source.ts',
    "digest('hex') === sha256",
    "digest('hex') !== ''",
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
