// Guards of tools in code.

import { guardsOf, proveGuards } from './prove.js';
import { toolChecks, toolParts } from './tool-checks.js';

const guard = guardsOf(toolChecks);

proveGuards(toolParts, [
  guard(
    'approval.option',
    'outside of a host, a tool with requestApproval does not run',
    'asking-tool-asks-everywhere',
    'always',
  ),
  guard(
    'approval.option',
    'outside of a host, a tool that asks without a question does not run',
    'ask-without-question-asks',
    'never',
  ),
  guard(
    'agent.inline',
    'an inline tool does not share its name with another tool',
    'inline-tool-names-compared',
    'never',
  ),
]);
