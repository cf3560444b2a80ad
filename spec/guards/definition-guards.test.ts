// Guards of definitions.

import { definitionChecks } from './definition-checks.js';
import { hostParts } from './library.js';
import { guardsOf, proveGuards } from './prove.js';

const guard = guardsOf(definitionChecks);

proveGuards(hostParts, [
  guard('definition.near-miss', 'a misspelt policy member is refused', 'near-miss-of-policy-refused', { value: '[]' }),
  guard(
    'agent.names',
    'two tools of one agent with the same name for models are refused',
    'tool-names-compared-as-models-see-them',
    { take: 0 },
  ),
  guard(
    'agent.names',
    'a blocked tool does not run under its name for models',
    'called-tool-resolved-to-its-id',
    'always',
  ),
  guard(
    'agent.names',
    'a tool whose id is the name of another tool for models does not run in its place',
    'tools-with-one-name-refused',
    'never',
  ),
]);
