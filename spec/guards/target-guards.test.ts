// Guards of what an approval covers and of which agents require one.

import { guardsOf, proveGuards } from './prove.js';
import { targetChecks, targetParts } from './target-checks.js';

const guard = guardsOf(targetChecks);

proveGuards(targetParts, [
  guard(
    'approval.target',
    'a program that changed after its approval was requested does not run',
    'approved-target-handed-on',
    'drop',
  ),
  guard(
    'approval.target',
    'a program that changes between its check and its start does not run',
    'program-matches-approval',
    'drop',
  ),
  guard('approval.target', 'a module runs with the approved bytes', 'module-imported-by-digest', { take: 0 }),
  guard(
    'approval.bytes',
    'a program whose file changes during its start never counts as approved',
    'program-checked-after-run',
    'drop',
  ),
  guard(
    'approval.bytes',
    'a running program is stopped if its file changed during its start',
    'changed-program-stopped',
    { value: '() => undefined' },
  ),
  guard(
    'approval.bytes',
    'a program whose file was changed and restored never counts as approved',
    'change-time-in-stamp',
    { value: "''" },
  ),
  guard('approval.bytes', 'a program whose file keeps changing is not started', 'program-file-settled', 'always'),
  guard('approval.target', 'a CommonJS module runs with the approved bytes', 'common-module-cache-cleared', 'drop'),
  guard('approval.target', 'a file is written only to the approved path', 'written-path-approved', 'drop'),
  guard(
    'approval.target',
    'a new file replaces no file that was created after the approval',
    'new-file-replaces-nothing',
    'drop',
  ),
  guard('approval.target', 'a standing grant ends when its program changes', 'grant-covers-target', 'always'),
  guard(
    'approval.modes',
    'the mode of a sub-agent does not cancel the approval policy of an enclosing agent',
    'enclosing-asks-apply',
    { rewrite: [/\.\w+\((\w+), \w+\)/, '.enclosingModes($1)'] },
  ),
  guard(
    'approval.modes',
    'an inner mode does not cancel the approvals of an outer mode',
    'every-enclosing-mode-asked',
    { rewrite: [/$/, '.slice(0, 1)'] },
  ),
  guard(
    'approval.default',
    'a tool that defines requestApproval requires approval by default',
    'asking-tool-asked-by-default',
    'never',
  ),
  guard('approval.default', 'only the agent that has a tool can allow it', 'tool-allowed-by-name', 'drop'),
  guard(
    'approval.limits',
    'a standing grant must limit the value of an argument',
    'limit-excludes-other-values',
    'always',
  ),
  guard(
    'approval.limits',
    'a standing grant must limit the value of an argument',
    'grant-limits-an-argument',
    'always',
  ),
  guard(
    'approval.limits',
    'a standing grant covers no call without an argument that it limits',
    'granted-limits-still-apply',
    'always',
  ),
]);

proveGuards(
  targetParts,
  [
    guard(
      'approval.bytes',
      'no code of a module runs if its file changes before Node reads it',
      'imported-source-verified',
      { literal: ["digest('hex') ===", "digest('hex') !== '' ||"] },
    ),
  ],
  { twinsOnly: true },
);
