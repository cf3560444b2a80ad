// Each guard of definitions, and its broken twin: the check holds on the library as it is, and fails without the guard.

import type { RequirementId } from '../requirements.js';
import { definitionChecks } from './definition-checks.js';
import { type Hosting, hosting, Workshop } from './library.js';
import { type Guard, proveGuards } from './prove.js';

function guard(
  id: RequirementId,
  disaster: keyof typeof definitionChecks,
  file: string,
  from: string,
  to: string,
): Guard<Hosting> {
  return { id, disaster, file, from, to, check: definitionChecks[disaster] };
}

const guards: readonly Guard<Hosting>[] = [
  guard(
    'definition.near-miss',
    'a near miss of policy is refused',
    'loops/definition/definition.ts',
    "const GUARDS: readonly string[] = ['policy'];",
    'const GUARDS: readonly string[] = [];',
  ),
  guard(
    'agent.names',
    'two tools of one agent that a model could not tell apart are refused',
    'loops/definition/agent.ts',
    'const name = toolNameOf(id);',
    'const name = id;',
  ),
  guard(
    'agent.names',
    'a blocked tool does not run under the name that models know it by',
    'loops/agent/tools.ts',
    'return tool.readOnly ? { ...call, name: tool.name, readOnly: true } : { ...call, name: tool.name };',
    'return call;',
  ),
  guard(
    'agent.names',
    'a tool whose id is the name of another does not run in its place',
    'loops/definition/agent.ts',
    'else if (other !== undefined) flaws.add(',
    'else if (false) flaws.add(',
  ),
];

/** The rings of a turn, and what they share. */
const shelf = { ...hosting, rings: new RegExp(`${hosting.rings.source}|^base[/]`) };

proveGuards(() => new Workshop<Hosting>(shelf), guards);
