/** `remove`: removes a session, damaged or not, and leaves a record of who did. */
import { createInterface } from 'node:readline/promises';
import { Fault, LoopError } from '../../../base/errors.js';
import { type Composed, compose, noDefinitions, settingsOf } from '../../compose.js';
import { UsageError } from '../../settings.js';
import { exact, plain } from '../paint.js';
import type { Terminal } from '../terminal.js';
import { type Act, exit, textOf } from '../verb.js';
import { whoOf } from '../who.js';

export const remove: Act = async ({ args, options, asked, terminal, json }) => {
  const session = String(args[0]);
  const [by, reason] = [whoOf(options), textOf(options.reason)];
  const settings = await settingsOf(asked);
  const notify = (message: string): void => terminal.say(message);
  const composed = await compose(settings, { make: false, definitions: await noDefinitions(), notify });
  try {
    const found = (await composed.store.journal.list()).find((listed) => listed.session === session);
    if (found === undefined)
      throw new LoopError('TURN_NOT_FOUND', `There is no session "${plain(session)}" in the store. See: rondo runs`);
    const entries = found.next;
    if (options.yes !== true && !(await isConfirmed(session, entries, terminal))) {
      terminal.say('Nothing was removed.');
      return exit.failed;
    }
    const removed = await removeHeld(composed, session, { by, ...(reason !== undefined && { reason }) });
    if (json) await terminal.json({ session, removed: true, entries, by, ...removed });
    terminal.say(
      `Removed session ${plain(session)} with ${exact(entries)} entries, on record as done by ${plain(by)}.`,
    );
    return exit.ok;
  } finally {
    await composed.close();
  }
};

/** Removes the session under a lease of its own, so that no turn runs in it and none begins. */
async function removeHeld({ store, maintenance }: Composed, session: string, word: { by: string; reason?: string }) {
  const lease = await store.leases.acquire(session, { turn: 'removal', answer: async () => null });
  if (lease === undefined) {
    const holder = (await store.leases.list()).find((held) => held.session === session);
    const who = holder === undefined ? 'another process' : `process ${holder.pid} (turn ${holder.turn})`;
    const message = `Session "${session}" was not removed: ${who} works on it. Wait for the turn, or cancel it first.`;
    throw new Fault('SESSION_BUSY', message, { session, ...(holder && { pid: holder.pid, turn: holder.turn }) });
  }
  try {
    return await maintenance?.remove(session, word);
  } finally {
    lease.release();
  }
}

/** Asks a person to write the name again. A script has nobody to ask, and says --yes. */
async function isConfirmed(session: string, entries: number, terminal: Terminal): Promise<boolean> {
  const { stdin, stderr } = terminal.streams;
  if (stdin.isTTY !== true || stderr.isTTY !== true)
    throw new UsageError('Removing a session cannot be undone. Say --yes to remove it without being asked.');
  terminal.say(`This removes all ${exact(entries)} entries of session ${plain(session)}, and cannot be undone.`);
  const line = createInterface({ input: stdin, output: stderr });
  try {
    return (await line.question('Write its name to go on: ')).trim() === session;
  } finally {
    line.close();
  }
}
