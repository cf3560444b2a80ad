/** `rondo receipts`: lists the receipts of the store, of a session or of a turn. */
import type { ReceiptArchive, ReceiptListing } from '../../../host/receipts/receipt-archive.js';
import { loadSettings } from '../../compose.js';
import { findReferencedTurns, type ReferencedTurns } from '../find-turn.js';
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
    const found = reference === undefined ? undefined : await findReferencedTurns(host, reference);
    const listed = await listReceipts(receiptsOf(host), found);
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

async function listReceipts(
  archive: ReceiptArchive,
  found: ReferencedTurns | undefined,
): Promise<readonly ReceiptListing[]> {
  if (found === undefined) return archive.list();
  const listed = (await Promise.all(found.sessionIds.map((session) => archive.list(session)))).flat();
  return listed.filter(({ turnId }) => found.turnIds?.includes(turnId) ?? true);
}

function rowOf({ id, turnId, sessionId, state, final, effects, at }: ReceiptListing): readonly string[] {
  const subject = turnId === '' ? `${sessionId} (session)` : turnId;
  return [id.slice(0, 19), subject, final ? state : `${state} (open)`, `${effects}`, at];
}
