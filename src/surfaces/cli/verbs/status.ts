/** `rondo status`: shows the status of a turn, or of all turns of a session. */
import type { TurnStatus } from '../../../protocol/trace.js';
import { loadSettings } from '../../compose.js';
import { findTurns } from '../find-turn.js';
import { openHostForReading } from '../open-host.js';
import { locationLines, pendingLines } from '../outcome.js';
import { formatDuration, sanitizeText } from '../terminal-text.js';
import { exitCodes, type VerbHandler } from '../verb.js';

/** Handles `rondo status`. */
export const status: VerbHandler = async ({ args, settingsInput, terminal, json }) => {
  const reference = String(args[0]);
  const { host, close } = await openHostForReading(await loadSettings(settingsInput), terminal);
  try {
    const turns = await findTurns(host, reference);
    const [first] = turns;
    const isSession = first?.sessionId === reference;
    if (json) await terminal.printJson(isSession ? { sessionId: reference, turns } : first);
    else await terminal.print(turns.map(renderTurnStatus).join('\n'));
    return exitCodes.ok;
  } finally {
    await close();
  }
};

function renderTurnStatus(turn: TurnStatus): string {
  const { turnId, sessionId, loopId, loopVersion, status: turnStatus, startedAt, endedAt, durationMs } = turn;
  const { error, reason, pending } = turn;
  const facts: (readonly [string, string | undefined])[] = [
    ['turn', turnId],
    ['session', sessionId],
    ['loop', `${loopId}@${loopVersion}`],
    ['status', turn.pid === undefined ? turnStatus : `${turnStatus} in process ${turn.pid}`],
    ['started', startedAt],
    ['ended', endedAt === undefined ? undefined : `${endedAt} (${formatDuration(durationMs ?? 0)})`],
    ['reason', reason === undefined ? undefined : sanitizeText(reason)],
    ['error', error === undefined ? undefined : `${error.code}: ${sanitizeText(error.message)}`],
  ];
  const lines = facts.flatMap(([label, value]) =>
    value === undefined ? [] : [`${label.padEnd(8)} ${sanitizeText(value)}`],
  );
  const placeLines = locationLines(error?.stack).map((line) => `${''.padEnd(8)} ${line}`);
  const waitLines = (pending ?? []).flatMap(pendingLines);
  const hint = turnStatus === 'interrupted' ? [`Continue with: rondo resume ${sanitizeText(turnId)}`] : [];
  return `${[...lines, ...placeLines, ...waitLines, ...hint].join('\n')}\n`;
}
