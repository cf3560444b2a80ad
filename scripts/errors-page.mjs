// Generates docs/errors.md from the table of codes and the advice below. Run it after a change to either:
// npm run build && node scripts/errors-page.mjs

import { writeFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';

/** @typedef {{ family: string, isRetryable: boolean, httpStatus: number, exitCode: number, meaning: string }} Facts */

/** What to do about each code. @type {Readonly<Record<string, string>>} */
export const advice = {
  APPROVAL_DENIED:
    'The approval was denied or has expired; the message names the person and the reason. Run the loop again to request it again.',
  BACKEND_FAILED:
    'Read the message: the cause is a key, a package, an address or the service itself. Add `retry` or `fallback`.',
  BUDGET_EXHAUSTED:
    'An agent reached `maxRounds` or a limit of `stop`; the status of its turn is `stopped`. Raise the limit, or run it again.',
  CANCELLED: 'Nothing: the cancel was requested. Start a new turn to do the work after all.',
  CONFIG_INVALID: 'Fix the line of `rondo.toml` that the message names. Unknown keys are refused.',
  CONTEXT_CHANGED:
    'Restore the file that the message names and resume the turn; or cancel it and start a new one. A summary of receipts cannot be restored.',
  CONTEXT_REFUSED:
    'Fix the reference in `contextSkills`, or the file that it names, as the message says; then `rondo retry` the turn.',
  CONTENT_REFUSED: 'Change the text, or the filter that the message names.',
  ANSWER_REFUSED:
    'Read the reason in the message. List what is pending with `rondo approvals` and `rondo status`; it may be answered already.',
  DEFINITION_INVALID: 'Fix what the message names. `rondo check` lists every problem with its line.',
  DEPTH_EXCEEDED: 'Look for a composite that calls itself; if that is intended, raise `maxDepth`.',
  GRANT_CONFLICT:
    'Use another id for a grant with other content. Give another grant only to a turn that has stopped at its grant.',
  GRANT_EXPIRED: 'Use a grant that has not expired; continue the turn with `rondo resume TURN --grant FILE`.',
  GRANT_INVALID: 'Fix the member of the grant that the message names. Unknown members are refused.',
  GRANT_WIDENED: 'Remove what the grant above does not permit; a derived grant only narrows.',
  SESSION_SEALED: 'The session is closed for good. Start the turn in another session.',
  EFFECT_IN_DOUBT: 'The effect was failed with `rondo resolve --fail`. If it must be done, start a new turn.',
  ENTRY_TOO_NEW: 'Use the newer version of Rondo that wrote the store.',
  EXECUTION_FAILED:
    'Read `details.failedStep`, or the message and the stack of the thrown error; fix the code or the mapping, then `rondo retry`.',
  INPUT_VALIDATION_FAILED: 'Fix the input at the paths in `details.errors`. `rondo show` prints the schema.',
  INVARIANT_VIOLATED: 'Satisfy the rule that the message names, then try again.',
  REQUEST_INVALID: 'Fix the value that the message names. Leave out a key or a session that you do not need.',
  KEY_CONFLICT: 'Use another key, or send the same loop and input as before.',
  LOG_REWRITTEN:
    'Restore the store from a backup. If receipts were removed on purpose, remove the file `*.checkpoint` and the directory `*.lengths` of the store in the directory of the keys.',
  KEYS_UNUSABLE:
    'Read the message: restore the key file, make it readable for its owner only, or correct the list of keys.',
  LOOP_NOT_FOUND: 'Check the spelling with `rondo list`, and `rondo check` for files that did not load.',
  MAPPING_FAILED:
    'Fix the path; the message lists the available members. Use `optional:` for a member that may be absent.',
  OUTPUT_VALIDATION_FAILED: 'Fix the body or the schema. For a prompt, describe the expected output in the template.',
  RECEIPT_INVALID: 'Run `rondo verify` with the session to see what is wrong, and restore a backup of the store.',
  RECEIPT_NOT_FOUND: 'Use a durable store (`sqlite:`), and `rondo receipts` to list what there is.',
  REPLAY_INCOMPLETE: 'Nothing: a replay stops at the end of the journal. Resume the turn to continue it.',
  OWNERSHIP_LOST:
    'Another process owns the store now. Continue the turn with `rondo resume`; look for a program that removes files of the data directory.',
  REPLAY_MISMATCH:
    'Raise the version of the changed loop and register the old version too, or run the earlier code; then resume the turn. Or cancel it.',
  FORK_REFUSED:
    'Use the entry that the message names: the turn is open there, and every effect that was started or approved has ended.',
  RETRY_REFUSED:
    'Resume a turn that has not ended. Start a new turn in place of one that succeeded, stopped or was cancelled.',
  SCOPE_BUSY: 'Await each step of the body; for parallel steps use `scope.all` or `scope.race`.',
  SESSION_BUSY:
    'Wait for the running turn, or use another session. If the message names a process that does not respond, continue or end it.',
  SESSION_CLOSED: 'Open the session again.',
  SIGNAL_CONFLICT: 'Use a new delivery id for a new signal; send the same content under a used one.',
  STALE_WRITER: 'End this process: another one owns the session now.',
  STORE_CLOSED: 'Open the store again.',
  STORE_DAMAGED:
    'Restore the file from a backup, or accept the loss by name: see `rondo doctor`. A damaged session is refused; the others continue.',
  STORE_FAILED: 'Read the message and try again; if it persists, check the disk.',
  STORE_FULL: 'Free space on the disk, then resume the interrupted turns: `rondo resume --all`.',
  STORE_MISSING: 'Restore the data directory from a backup, or start with a new one; then open the store again.',
  STORE_OWNED:
    'The owner of the store does not respond: continue or end the process that the message names, then try again.',
  STORE_READ_ONLY: 'Give the process write permission for the file and its directory.',
  SYNC_FAILED: 'Check the disk, then start again: the store opens with everything that was acknowledged.',
  TEMPLATE_FAILED: 'Send the variable, require it in `inputSchema`, or remove it from the template.',
  HOSTED_LOOP_NOT_FOUND: 'List the hosted loops with `rondo host status`; start one with `rondo host start FILE`.',
  HOSTED_LOOP_CONFLICT:
    'A stopped loop stays stopped, and a started one keeps its content: start the changed one under another id.',
  SIGNAL_REFUSED: 'Declare the signal in the file of the hosted loop, and sign its deliveries as it declares.',
  INBOX_FULL: 'Send the signal again later, or let a worker run the turns that are due.',
  HANDOFF_REFUSED:
    'Name the sender in `acceptsHandoffsFrom` of the target, and ask for no more than the sender may do.',
  TIMEOUT: 'Raise `timeoutMs`, add `retry`, or find the cause of the delay.',
  TOOL_FAILED: 'Read the message of the tool. With safety `once`, find out whether the tool did its work.',
  TOOL_NOT_ADMITTED:
    'The tool is blocked by a policy, or changed after its approval. Change the policy, or request the approval again.',
  TOOL_NOT_FOUND: 'The model receives the error. If the agent should have the tool, add it to `tools`.',
  TURN_ENDED: 'Nothing: the turn needs no more signals. Look at its result with `rondo status`, or start a new turn.',
  TURN_NOT_FOUND: 'List the turns with `rondo runs`; check `--data` and `--store`.',
  VALUE_INVALID: 'Send plain JSON within the limits of depth and size; the message names the location.',
  VIEW_FAILED: 'Fix the view: it must fold every entry without throwing.',
};

/** Returns the page for a table of codes. @param {Readonly<Record<string, Facts>>} codes */
export function errorsPage(codes) {
  const names = Object.keys(codes).sort();
  const missing = names.filter((code) => !advice[code]);
  if (missing.length > 0) throw new Error(`scripts/errors-page.mjs has no advice about ${missing.join(', ')}.`);
  const unknown = Object.keys(advice).filter((code) => !names.includes(code));
  if (unknown.length > 0)
    throw new Error(`scripts/errors-page.mjs gives advice about ${unknown.join(', ')}, which is not an error code.`);
  const rows = names.map((code) => rowOf(code, /** @type {Facts} */ (codes[code])));
  return [...head, ...rows, ''].join('\n');
}

/** @param {string} code @param {Facts} facts */
function rowOf(code, { family, isRetryable, httpStatus, exitCode, meaning }) {
  return `| \`${code}\` | ${family} | ${isRetryable ? 'yes' : 'no'} | ${httpStatus} | ${exitCode} | ${meaning} | ${advice[code]} |`;
}

const head = [
  '<!-- Generated by scripts/errors-page.mjs from src/base/errors.ts. Edit those files; a test compares them with this page. -->',
  '',
  '# Errors',
  '',
  'Every failure has a code. An **outcome** is the end of a call: it is in the journal and in the result, and a body can catch it. A',
  '**fault** is a failure of the runtime: it ends the attempt, no body observes it, and everything acknowledged before it is durable.',
  '',
  '*Retry* states whether the same request may succeed later. A `retry` policy does not retry the others, nor an',
  'error with `retryable: false` in its details ([policies](guides/policy.md)). *Exit* is the exit code of the command line ([all of them](guides/cli.md)).',
  '',
  '| code | family | retry | HTTP | exit | what it means | what to do |',
  '|---|---|---|---|---|---|---|',
];

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const { errorCodes } = await import('rondo');
  writeFileSync(new URL('../docs/errors.md', import.meta.url), errorsPage(errorCodes));
}
