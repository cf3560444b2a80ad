// Guards of hosted loop documents.

import { hostedDocumentChecks, hostedDocumentParts } from './hosted-document-checks.js';
import { guardsOf, proveGuards } from './prove.js';

const guard = guardsOf(hostedDocumentChecks);

proveGuards(hostedDocumentParts, [
  guard('hosted.document', 'a hosted loop without a maximum of turns is refused', 'max-turns-required', {
    value: '{}',
  }),
  guard('hosted.document', 'a hosted loop with more than a million turns is refused', 'max-turns-bounded', {
    rewrite: [/MAX_TURNS/, 'MAX_COUNT'],
  }),
  guard('hosted.document', 'an unknown member of a hosted loop is refused', 'unknown-hosted-member-refused', 'drop'),
  guard(
    'hosted.document',
    'a mapping that no projection can satisfy is refused',
    'projection-mapping-readable',
    'always',
  ),
  guard('hosted.document', 'a stop condition on several values is refused', 'output-path-is-singular', 'always'),
  guard(
    'hosted.document',
    'a misspelt keyword in the schema of a signal is refused',
    'unknown-keyword-of-signals-refused',
    'never',
  ),
  guard('hosted.document', 'a hosted loop with more than 100 signals is refused', 'signals-bounded', 'never'),
  guard('hosted.document', 'a signal with a strange name is refused', 'signal-name-checked', 'always'),
  guard('hosted.document', 'two signals with one secret are refused', 'secrets-of-signals-differ', 'never'),
  guard('hosted.grant', 'the grant of a turn with a budget of its own is refused', 'turn-grant-has-no-id', 'never'),
  guard('hosted.grant', 'an invalid grant of a turn or a handoff is refused', 'turn-grant-checked', 'drop'),
  guard(
    'hosted.document',
    'overlap and catch-up without due times are refused',
    'due-time-rules-need-due-times',
    'always',
  ),
  guard('hosted.document', 'a day of TOML that does not exist is refused', 'toml-date-on-an-existing-day', 'never'),
  guard(
    'hosted.document',
    'a hosted loop among definitions is no broken definition',
    'hosted-loop-is-no-definition',
    'never',
  ),
  guard(
    'hosted.document',
    'an id of two hosted loop files selects none of them',
    'ambiguous-hosted-loop-refused',
    'never',
  ),
]);
