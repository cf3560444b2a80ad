/** `rondo export`: writes receipts to a file or to stdout. */
import { resolve } from 'node:path';
import { LoopError } from '../../../base/errors.js';
import type { Host } from '../../../host/host.js';
import { payloadOf } from '../../../views/receipt/envelope.js';
import { runxReceiptBytes, toRunxReceipt } from '../../../views/receipt/runx/export-runx.js';
import { parseStatement } from '../../../views/receipt/statement.js';
import { trustPredicateOf } from '../../authority.js';
import { loadSettings, openReceiptKeys, type ProjectSettings } from '../../compose.js';
import { writeOutput } from '../../output-path.js';
import { UsageError } from '../../settings.js';
import { findTurns } from '../find-turn.js';
import { openHostForReading } from '../open-host.js';
import { receiptsOf } from '../receipt-access.js';
import { exitCodes, textOption, type VerbHandler } from '../verb.js';

/** Handles `rondo export`. */
export const exportReceipts: VerbHandler = async ({ options, settingsInput, terminal, json }) => {
  const [session, turn, out] = [textOption(options.session), textOption(options.turn), textOption(options.out)];
  const format = textOption(options.as) ?? 'dsse';
  if (format !== 'dsse' && format !== 'runx') throw new UsageError(`--as must be dsse or runx, not "${format}".`);
  if (session !== undefined && turn !== undefined) throw new UsageError('Give --session or --turn, not both.');
  if (format === 'runx' && turn === undefined) throw new UsageError('--as runx exports one turn: give it with --turn.');
  const settings = await loadSettings(settingsInput);
  const { host, close } = await openHostForReading(settings, terminal);
  try {
    const bytes =
      format === 'runx'
        ? await runxDocument(host, String(turn), settings)
        : await receiptsOf(host).export(await sessionsOf(host, session ?? turn));
    if (out === undefined) await terminal.print(bytes.toString());
    else {
      writeOutput(resolve(settings.cwd, out), bytes, trustPredicateOf(settings.authority));
      if (json) await terminal.printJson({ out, bytes: bytes.length });
      terminal.printToStderr(`Wrote ${out}.`);
    }
    return exitCodes.ok;
  } finally {
    await close();
  }
};

/** Returns the sessions of a turn or session; undefined for all. The receipts of a session are one chain. */
async function sessionsOf(host: Host, reference: string | undefined): Promise<readonly string[] | undefined> {
  if (reference === undefined) return undefined;
  return [...new Set((await findTurns(host, reference)).map(({ sessionId }) => sessionId))];
}

/** Returns the last receipt of a turn in the form of runx, signed by the current signer. */
async function runxDocument(host: Host, reference: string, settings: ProjectSettings): Promise<Buffer> {
  const [turn] = await findTurns(host, reference);
  const receipts = await receiptsOf(host).receiptsOf(turn?.sessionId ?? '');
  const last = receipts.findLast((receipt) => receipt.turn === turn?.turnId);
  if (last === undefined || turn === undefined) throw new UsageError(`The turn ${reference} has no receipt.`);
  const { valid, reasons } = await receiptsOf(host).verify([turn.sessionId]);
  // The export is a new signature: what the stored receipt does not prove must not be signed.
  if (!valid)
    throw new LoopError(
      'RECEIPT_INVALID',
      `Nothing was exported: the receipts of session "${turn.sessionId}" are not valid (${reasons.join(', ')}). See: rondo verify ${turn.sessionId}`,
      { reasons },
    );
  const keys = await openReceiptKeys(settings);
  const signer = keys.environmentSigner ?? { ...(await keys.signer('receipt')), issuerType: 'hosted' as const };
  const { predicate } = parseStatement(payloadOf(last.envelope) ?? Buffer.alloc(0));
  return runxReceiptBytes(await toRunxReceipt({ predicate, hash: last.hash }, signer));
}
