// Guards of what the command line takes from a project, and writes into one.

import { projectChecks, projectParts } from './project-checks.js';
import { guardsOf, proveGuards } from './prove.js';

const guard = guardsOf(projectChecks);

proveGuards(projectParts, [
  guard('authority.env-file', 'nothing is read from an untrusted .env', 'env-file-needs-trust', { take: 0 }),
  guard('authority.env-file', 'a .env replaces no variable', 'env-file-overrides-nothing', { value: 'accepted' }),
  guard('authority.env-file', 'a .env sets only keys', 'env-file-sets-only-keys', 'always'),
  guard('definition.scripts', 'a script beside the definitions is not run', 'scripts-not-imported', 'never'),
  guard('cli.completion', 'an id that a shell could evaluate is not offered', 'completed-ids-are-plain', 'always'),
  guard(
    'authority.paths',
    'an output follows no link of a clone to the outside',
    'untrusted-link-not-followed',
    'never',
  ),
  guard('cli.init', 'a directory with a file of the template stays as it is', 'init-overwrites-nothing', 'never'),
]);
