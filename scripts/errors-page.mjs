/**
 * Makes docs/errors.md from the table of codes, and adds what to do about each. Run it after a change of the table:
 * npm run build && node scripts/errors-page.mjs
 */
import { writeFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';

/** @typedef {{ family: string, isRetryable: boolean, httpStatus: number, exitCode: number, meaning: string }} Facts */

/** @type {Readonly<Record<string, string>>} */
export const advice = {
  APPROVAL_DENIED:
    'It was denied or expired; the message says by whom and why. Run the turn again to request it again.',
  BACKEND_FAILED: 'Read the message: a key, a package, an address or the service itself. Add `retry` or `fallback`.',
  BUDGET_EXHAUSTED:
    'An agent reached `maxRounds` or a limit of `stop`; a turn says `stopped`. Raise the limit, or run it again.',
  CANCELLED: 'Nothing, it was asked for. Start a new turn to do the work after all.',
  CONFIG_INVALID: 'Mend the line of `rondo.toml` that the message names. Unknown keys are refused.',
  CONTENT_REFUSED: 'Change the text, or the filter of the policy that the message names.',
  ANSWER_REFUSED:
    'The message says why. Look what waits with `rondo approvals` and `rondo status`; it may have been decided.',
  DEFINITION_INVALID: 'Mend what the message names. `rondo check` lists every flaw with its line.',
  DEPTH_EXCEEDED: 'Look for a composite that calls itself; if it is meant, raise `maxDepth`.',
  EFFECT_IN_DOUBT: 'It was resolved with `rondo resolve --fail`. If the work is still needed, start a new turn.',
  ENTRY_TOO_NEW: 'Use the newer version of Rondo that wrote the store.',
  EXECUTION_FAILED: 'Read `details.failedStep`, or the message of what was thrown; mend the code or the mapping.',
  INPUT_VALIDATION_FAILED: 'Mend the input at the places in `details.errors`. `rondo show` prints the schema.',
  INVARIANT_VIOLATED: 'Do what the rule asks for first; the message names the rule.',
  KEY_CONFLICT: 'Use another key, or send the loop and the input that the key belongs to.',
  LOOP_NOT_FOUND: 'Check the spelling with `rondo list`, and `rondo check` for files that did not load.',
  MAPPING_FAILED: 'Mend the path; the message lists what is readable there. Use `optional:` for what may be absent.',
  OUTPUT_VALIDATION_FAILED: 'Mend the body or the schema. For a prompt, say in the template what is wanted.',
  REPLAY_INCOMPLETE: 'Nothing is wrong: a replay stops where the record does. Resume the turn to go on.',
  OWNERSHIP_LOST:
    'Another process owns the store now. Continue the turn with `rondo resume`; look for code that removes files of the data directory.',
  REPLAY_MISMATCH: 'Bring back the code that the turn began with, then resume. Give changed code a new version.',
  SCOPE_BUSY: 'Await each step of the body; for steps side by side use `scope.all` or `scope.race`.',
  SESSION_BUSY:
    'Wait for the turn that runs, or use another session. If the message names a process that does not answer, continue or end it.',
  SESSION_CLOSED: 'Open the session again.',
  SIGNAL_CONFLICT: 'Use a new delivery id for a new signal; send the same content under the old one.',
  STALE_WRITER: 'Let this process end: another one has the session now.',
  STORE_CLOSED: 'Open the store again.',
  STORE_DAMAGED:
    'Restore the file from a backup, or accept the loss by name: see `rondo doctor`. What is damaged is refused, other sessions go on.',
  STORE_FAILED: 'Read the message, and try again; if it stays, look at the disk.',
  STORE_FULL: 'Make room, then resume what was interrupted: `rondo resume --all`.',
  STORE_MISSING: 'Restore the data directory from a backup, or start with a new one; then open the store again.',
  STORE_OWNED:
    'The owner of the store does not answer: continue or end the process that the message names, then try again.',
  STORE_READ_ONLY: 'Give the process the right to write the file and its directory.',
  SYNC_FAILED: 'Look at the disk, then start again: the store opens with all that was acknowledged.',
  TEMPLATE_FAILED: 'Send the variable, require it in `inputSchema`, or take it out of the template.',
  TIMEOUT: 'Raise `timeoutMs`, add `retry`, or find out why it is slow.',
  TOOL_FAILED: 'Read the message: it is the tool that speaks. With safety `once`, find out whether it did its work.',
  TOOL_NOT_ADMITTED: 'It is blocked by a policy, or changed after it was approved. Change the policy, or ask again.',
  TOOL_NOT_FOUND: 'The model is told. If it is a tool that the agent should have, add it to `tools`.',
  TURN_NOT_FOUND: 'Look for it with `rondo runs`; check `--data` and `--store`.',
  VALUE_INVALID: 'Send plain JSON, not too deep or large; the message says where it is not.',
  VIEW_FAILED: 'Mend the view: it must fold every entry without throwing.',
};

/** The page that a table of codes makes. @param {Readonly<Record<string, Facts>>} codes */
export function errorsPage(codes) {
  const names = Object.keys(codes).sort();
  const silent = names.filter((code) => !advice[code]);
  if (silent.length > 0) throw new Error(`scripts/errors-page.mjs does not say what to do about ${silent.join(', ')}.`);
  const spare = Object.keys(advice).filter((code) => !names.includes(code));
  if (spare.length > 0)
    throw new Error(`scripts/errors-page.mjs gives advice about ${spare.join(', ')}, which is no code.`);
  const rows = names.map((code) => rowOf(code, /** @type {Facts} */ (codes[code])));
  return [...head, ...rows, ''].join('\n');
}

/** @param {string} code @param {Facts} facts */
function rowOf(code, { family, isRetryable, httpStatus, exitCode, meaning }) {
  return `| \`${code}\` | ${family} | ${isRetryable ? 'yes' : 'no'} | ${httpStatus} | ${exitCode} | ${meaning} | ${advice[code]} |`;
}

const head = [
  '<!-- Made by scripts/errors-page.mjs from src/base/errors.ts; a test compares. Change those, not this. -->',
  '',
  '# Errors',
  '',
  'Every failure has a code. An **outcome** is how a call ended: it is in the journal and in the result, and a body can catch it. A',
  '**fault** is a failure of the machinery: it ends the attempt, no body sees it, and what was acknowledged before it stays true.',
  '',
  '*Retry* says whether the same request may succeed later, unchanged; what a `retry` policy looks at is `retryable` in the details of',
  'the one error ([policies](guides/policy.md)). *Exit* is the exit code of the command line ([all of them](guides/cli.md)).',
  '',
  '| code | family | retry | HTTP | exit | what it means | what to do |',
  '|---|---|---|---|---|---|---|',
];

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const { errorCodes } = await import('rondo');
  writeFileSync(new URL('../docs/errors.md', import.meta.url), errorsPage(errorCodes));
}
