/** `rondo status`: shows the status of a turn, or of all turns of a session. */
import type { Host } from '../../../host/host.js';
import type { TurnStatus } from '../../../protocol/trace.js';
import { loadSettings } from '../../compose.js';
import { findTurns } from '../find-turn.js';
import { openHostForReading } from '../open-host.js';
import { CallDetailRows, SHORTENED_HINT } from '../render-details.js';
import { type InspectedTurn, statusDocument, statusLines } from '../render-status.js';
import { exitCodes, type VerbHandler } from '../verb.js';

/** Handles `rondo status`. */
export const status: VerbHandler = async ({ args, options, settingsInput, terminal, json }) => {
  const reference = String(args[0]);
  const { host, close } = await openHostForReading(await loadSettings(settingsInput), terminal);
  try {
    const turns: InspectedTurn[] = [];
    for (const turn of await findTurns(host, reference)) turns.push(await inspectTurn(host, turn));
    const documents = turns.map(statusDocument);
    const isSession = documents[0]?.sessionId === reference;
    if (json) await terminal.printJson(isSession ? { sessionId: reference, turns: documents } : documents[0]);
    else {
      const full = options.full === true;
      const rows = new CallDetailRows([], { maxRows: full ? Number.POSITIVE_INFINITY : 1 });
      const { width } = terminal.displayOf();
      const texts = turns.map(
        (turn) =>
          `${statusLines(turn, { width, now: Date.now(), rows, full, cwd: terminal.streams.cwd }).join('\n')}\n`,
      );
      await terminal.print(texts.join('\n'));
      if (rows.hasShortened) terminal.printToStderr(SHORTENED_HINT);
    }
    return exitCodes.ok;
  } finally {
    await close();
  }
};

/** Returns a turn with its calls and approvals; without them if the process that runs it does not answer. */
export async function inspectTurn(host: Host, turn: TurnStatus): Promise<InspectedTurn> {
  const { loopId, turnId } = turn;
  if (loopId === '') return { turn, calls: [], approvals: [] };
  return { turn, calls: await host.archive.calls(turnId), approvals: await host.archive.approvalRecords(turnId) };
}
