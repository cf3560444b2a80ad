// Guards of context.

import { contextChecks, contextParts } from './context-checks.js';
import { guardsOf, proveGuards } from './prove.js';

const guard = guardsOf(contextChecks);

proveGuards(contextParts, [
  guard('context.references', 'a URL is no reference', 'context-urls-refused', 'never'),
  guard(
    'context.references',
    'a hidden file, or a path with "..", is no reference',
    'hidden-context-files-refused',
    'never',
  ),
  guard('context.references', 'a thirteenth reference is refused', 'context-references-bounded', { value: '1000' }),
  guard('context.references', 'a repeated reference is refused', 'duplicate-context-references-refused', 'never'),
  guard('context.files', 'one file under two names is refused', 'one-context-file-under-two-names-refused', 'never'),
  guard('context.files', 'a text over 64 KiB is refused', 'context-item-size-bounded', 'never'),
  guard('context.files', 'texts over 256 KiB together are refused', 'context-total-size-bounded', 'never'),
  guard('context.files', 'a link that leaves the directory is refused', 'context-file-inside-directory', 'never'),
  guard(
    'context.files',
    'a folder that is replaced while its file is opened is noticed',
    'opened-context-file-located',
    'drop',
  ),
  guard(
    'context.files',
    'a definition that claims an unknown directory reads nothing there',
    'context-directory-known',
    'never',
  ),
  guard(
    'context.changed',
    'a turn whose context has changed does not continue',
    'changed-context-stops-the-turn',
    'never',
  ),
  guard(
    'context.changed',
    'a cancelled turn ends although its context has changed',
    'cancelled-turn-ends-with-changed-context',
    'never',
  ),
]);
