// Guards of the output of commands.

import { guardsOf, proveGuards } from './prove.js';
import { terminalChecks, terminalParts } from './terminal-checks.js';

const guard = guardsOf(terminalChecks);

proveGuards(terminalParts, [
  guard('cli.escape', 'an answer cannot control the terminal', 'printed-text-escaped', { take: 0 }),
  guard('cli.escape', 'an answer cannot control the terminal', 'only-own-colors-pass', {
    literal: ['(?:1|2|22|31|32|33|36|39)m', '[0-9;]*[A-Za-z]'],
  }),
  guard('cli.escape', 'a message cannot control the terminal', 'message-escaped', { take: 0 }),
  guard('cli.escape', 'a progress line cannot control the terminal beyond its line', 'progress-escaped', { take: 0 }),
  guard('cli.escape', 'JSON output cannot control the terminal, and keeps its value', 'json-escaped', { take: 0 }),
  guard('cli.escape', 'JSON output cannot control the terminal, and keeps its value', 'ignorable-characters-escaped', {
    literal: ['\\\\p{Default_Ignorable_Code_Point}', ''],
  }),
  guard('approval.display', 'an approval shows every invisible character', 'all-unseen-characters-escaped', {
    value: '/\\u001b/g',
  }),
  guard('cli.output', 'a document that a full disk truncates is an error', 'short-writes-continued', {
    value: 'Infinity',
  }),
  guard('cli.output', 'a document that a full disk truncates is an error', 'files-written-completely', { take: 1 }),
  guard('cli.output', 'a write without progress is an error', 'full-disk-is-an-error', 'never'),
]);
