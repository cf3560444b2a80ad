/** `rondo remove`: removes a session, damaged or not, and records the removal. */
import { createInterface } from 'node:readline/promises';
import { Fault, LoopError } from '../../../base/errors.js';
import { isReservedSession } from '../../../journal/reserved-sessions.js';
import { type ComposedHost, composeHost, emptyDefinitions, loadSettings } from '../../compose.js';
import { UsageError } from '../../settings.js';
import type { Terminal } from '../terminal.js';
import { formatInteger, sanitizeText } from '../terminal-text.js';
import { userNameOf } from '../user-name.js';
import { exitCodes, textOption, type VerbHandler } from '../verb.js';

/** Handles `rondo remove`. */
export const remove: VerbHandler = async ({ args, options, settingsInput, terminal, json }) => {
  const session = String(args[0]);
  if (isReservedSession(session))
    throw new UsageError(
      `${sanitizeText(session)} cannot be removed: it holds what Rondo itself keeps, such as the log of receipts or a budget.`,
    );
  const [by, reason] = [userNameOf(options), textOption(options.reason)];
  const settings = await loadSettings(settingsInput);
  const notify = (message: string): void => terminal.printToStderr(message);
  const composed = await composeHost(settings, {
    createIfMissing: false,
    definitions: await emptyDefinitions(),
    notify,
  });
  try {
    const head = (await composed.store.journal.list()).find((listed) => listed.session === session);
    if (head === undefined)
      throw new LoopError(
        'TURN_NOT_FOUND',
        `There is no session "${sanitizeText(session)}" in the store. See: rondo runs`,
      );
    const entries = head.nextSeq;
    if (options.yes !== true && !(await isConfirmed(session, entries, terminal))) {
      terminal.printToStderr('Nothing was removed.');
      return exitCodes.failed;
    }
    const removed = await removeUnderLease(composed, session, { by, ...(reason !== undefined && { reason }) });
    if (json) await terminal.printJson({ session, removed: true, entries, by, ...removed });
    terminal.printToStderr(
      `Removed session ${sanitizeText(session)} with ${formatInteger(entries)} entries, recorded as removed by ${sanitizeText(by)}.`,
    );
    return exitCodes.ok;
  } finally {
    await composed.close();
  }
};

/** Removes the session under a lease, so that no turn runs or starts in it. */
async function removeUnderLease(
  { host, store, maintenance }: ComposedHost,
  session: string,
  attribution: { by: string; reason?: string },
) {
  const lease = await store.leases.acquire(session, { turn: 'removal', handleRequest: async () => null });
  if (lease === undefined) {
    const holder = (await store.leases.list()).find((active) => active.session === session);
    const user = holder === undefined ? 'another process' : `process ${holder.pid} (turn ${holder.turn})`;
    const message = `Session "${session}" was not removed: ${user} is using it. Wait for the turn, or cancel it first.`;
    throw new Fault('SESSION_BUSY', message, { session, ...(holder && { pid: holder.pid, turn: holder.turn }) });
  }
  try {
    await host.receipts?.recordRemoval(session, attribution.by);
    return await maintenance?.remove(session, attribution);
  } finally {
    lease.release();
  }
}

/** Asks the user to type the name of the session. Without a terminal, --yes is required. */
async function isConfirmed(session: string, entries: number, terminal: Terminal): Promise<boolean> {
  const { stdin, stderr } = terminal.streams;
  if (stdin.isTTY !== true || stderr.isTTY !== true)
    throw new UsageError('Removing a session cannot be undone. Use --yes to remove it without confirmation.');
  terminal.printToStderr(
    `This removes all ${formatInteger(entries)} entries of session ${sanitizeText(session)}, and cannot be undone.`,
  );
  const line = createInterface({ input: stdin, output: stderr });
  try {
    return (await line.question('Type its name to confirm: ')).trim() === session;
  } finally {
    line.close();
  }
}
