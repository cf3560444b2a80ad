/** `rondo receipts`: lists the receipts of the store, of a session or of a turn. */
import type { ReceiptListing } from '../../../host/receipts/receipt-archive.js';
import { loadSettings } from '../../compose.js';
import { findTurns } from '../find-turn.js';
import { openHostForReading } from '../open-host.js';
import { receiptsOf } from '../receipt-access.js';
import { exitCodes, textOption, type VerbHandler } from '../verb.js';

const TABLE_HEAD = ['RECEIPT', 'TURN', 'STATE', 'EFFECTS', 'SEALED'];

/** Handles `rondo receipts`. */
export const receipts: VerbHandler = async ({ args, settingsInput, terminal, json }) => {
  const settings = await loadSettings(settingsInput);
  const { host, close } = await openHostForReading(settings, terminal);
  try {
    const reference = textOption(args[0]);
    const turns = reference === undefined ? undefined : await findTurns(host, reference);
    const sessionId = turns?.[0]?.sessionId;
    const isOfSession = turns === undefined || reference === sessionId;
    const listed = (await receiptsOf(host).list(sessionId)).filter(
      ({ turnId }) => isOfSession || turns.some((turn) => turn.turnId === turnId),
    );
    if (json) await terminal.printJson({ receipts: listed });
    else if (listed.length > 0) {
      const { renderTable } = await import('../table.js');
      await terminal.print(`${renderTable(listed.map(rowOf), { ...terminal.displayOf(), head: TABLE_HEAD })}\n`);
    }
    if (listed.length === 0) terminal.printToStderr('There are no receipts.');
    return exitCodes.ok;
  } finally {
    await close();
  }
};

function rowOf({ id, turnId, sessionId, state, final, effects, at }: ReceiptListing): readonly string[] {
  const subject = turnId === '' ? `${sessionId} (session)` : turnId;
  return [id.slice(0, 19), subject, final ? state : `${state} (open)`, `${effects}`, at];
}
