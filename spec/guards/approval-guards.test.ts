// Each guard of the gate, and its broken twin: the check holds on the library as it is, and fails without the guard.

import type { RequirementId } from '../requirements.js';
import { approvalChecks } from './approval-checks.js';
import { type Hosting, hosting, Workshop } from './library.js';
import { type Guard, proveGuards } from './prove.js';

function guard(
  id: RequirementId,
  disaster: keyof typeof approvalChecks,
  file: string,
  from: string,
  to: string,
): Guard<Hosting> {
  return { id, disaster, file, from, to, check: approvalChecks[disaster] };
}

const guards: readonly Guard<Hosting>[] = [
  guard(
    'approval.gate',
    'a tool that is blocked runs once somebody says yes',
    'layers/approval.ts',
    "if (rule.policy !== 'ask') throw blocked(effect.name);",
    '',
  ),
  guard(
    'approval.bound',
    'a tool changes its arguments while it finds words for a person',
    'layers/approval.ts',
    'describe?.(copy(input) as Json,',
    'describe?.(input as Json,',
  ),
  guard(
    'approval.bound',
    'what was approved runs with other arguments',
    'layers/approval.ts',
    'request.argumentsDigest !== argumentsOf(effect)',
    'false',
  ),
  guard(
    'approval.bound',
    'another definition runs than was approved',
    'layers/approval.ts',
    'request.definition !== definitionOf(effect)',
    'false',
  ),
  guard(
    'approval.bound',
    'a yes from after its time, put past the host, lets a tool run',
    'layers/approval.ts',
    'if (!(at <= request.expiresAt))',
    'if (false)',
  ),
  guard(
    'approval.once',
    'a tool runs that a person said no to',
    'layers/approval.ts',
    'if (approved !== true) {',
    'if (false) {',
  ),
  guard(
    'approval.once',
    'whoever answers second is not told that somebody answered before',
    'host/decisions.ts',
    "if (known.answered !== undefined) return 'it was answered before';",
    '',
  ),
  guard(
    'approval.once',
    'an answer is taken that nobody waits for any more',
    'host/decisions.ts',
    'if (known.over || approval === undefined)',
    'if (approval === undefined)',
  ),
  guard(
    'approval.bound',
    'an answer that was given to another call is taken for this one',
    'host/decisions.ts',
    'if (other !== undefined) return',
    'if (false) return',
  ),
  guard(
    'approval.forged',
    'an agent says yes to itself',
    'host/decisions.ts',
    'if (isAgent(answer.by, approval)) return',
    'if (false) return',
  ),
  guard(
    'approval.forged',
    'an agent says yes to itself',
    'host/decisions.ts',
    'const name = spelt(by);',
    'const name = by;',
  ),
  guard(
    'approval.forged',
    'somebody answers who was not asked',
    'host/decisions.ts',
    'if (approval.approvers !== undefined && !approval.approvers.includes(answer.by))',
    'if (false)',
  ),
  guard(
    'approval.bound',
    'an answer is taken after its time',
    'host/decisions.ts',
    'if (now > Date.parse(approval.expiresAt)) return',
    'if (false) return',
  ),
  guard(
    'approval.forged',
    'an answer is checked with one content and taken with another',
    'host/decisions.ts',
    'const answer = { ...given };',
    'const answer = given;',
  ),
  guard(
    'approval.forged',
    'an answer that was refused leaves no trace',
    'host/decisions.ts',
    "await session.note(REFUSED, ids.id(), { id, approved, by, code: 'DECISION_REFUSED', message });",
    '',
  ),
  guard(
    'approval.standing',
    'a grant for everything is taken for a predicate',
    'host/decisions.ts',
    'if (limitedArguments(standing, given).length > 0) return undefined;',
    'return undefined;',
  ),
  guard(
    'approval.standing',
    'a denial stands as a grant',
    'host/decisions.ts',
    "if (!approved) return 'a denial cannot stand for further calls';",
    '',
  ),
  guard(
    'approval.gate',
    'somebody further up allows what somebody further down did not',
    'loops/agent/watch.ts',
    'return LENIENCE.indexOf(a) < LENIENCE.indexOf(b) ? a : b;',
    'return b;',
  ),
  guard(
    'approval.gate',
    'a tool of an agent that asks about it runs unasked',
    'host/gate.ts',
    "kind === 'tool' ? stricter(own, watches.policy(key, name)) : own;",
    'own;',
  ),
  guard(
    'approval.gate',
    'a tool runs unasked inside of steps that are asked about',
    'loops/agent/watch.ts',
    'if (name !== undefined) names.push(name);',
    '',
  ),
  guard(
    'approval.gate',
    'a tool runs unasked inside of steps that another process began',
    'host/attendance.ts',
    "this.watches.began(entry.key, entry.name ?? '');",
    "this.watches.begin(entry.key, entry.name ?? '');",
  ),
  guard(
    'approval.gate',
    'code that an agent asks about runs unasked',
    'loops/admission.ts',
    "if (policy === undefined || policy === 'always_allow') return body(input, scope);",
    'return body(input, scope);',
  ),
  guard(
    'approval.standing',
    'a grant on behalf of one person holds for another',
    'host/gate.ts',
    'given.principal === principals?.principal &&',
    '',
  ),
  guard('approval.standing', 'a grant answers for somebody who may not', 'host/gate.ts', 'mayAnswer(given.by) &&', ''),
  guard(
    'approval.standing',
    'a grant holds for another definition',
    'host/gate.ts',
    'given.definition === definition &&',
    '',
  ),
  guard(
    'approval.standing',
    'a grant covers a call that its predicate does not hold for',
    'host/gate.ts',
    'covers(given, input),',
    'true,',
  ),
  guard(
    'approval.standing',
    'a body grants itself what it may not do',
    'views/approvals.ts',
    "if (!key.startsWith('#')) return;",
    '',
  ),
];

proveGuards(() => new Workshop<Hosting>(hosting), guards);
