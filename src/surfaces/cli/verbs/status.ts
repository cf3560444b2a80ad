/** `status`: how a turn stands, or all turns of a session. */
import type { TurnStatus } from '../../../protocol/trace.js';
import { settingsOf } from '../../compose.js';
import { hostToLook } from '../host.js';
import { waitOf } from '../outcome.js';
import { duration, plain } from '../paint.js';
import { findTurns } from '../turn.js';
import { type Act, exit } from '../verb.js';

export const status: Act = async ({ args, asked, terminal, json }) => {
  const given = String(args[0]);
  const { host, close } = await hostToLook(await settingsOf(asked), terminal);
  try {
    const turns = await findTurns(host, given);
    const [first] = turns;
    const session = first?.sessionId === given;
    if (json) await terminal.json(session ? { sessionId: given, turns } : first);
    else await terminal.print(turns.map(forPeople).join('\n'));
    return exit.ok;
  } finally {
    await close();
  }
};

function forPeople(turn: TurnStatus): string {
  const { turnId, sessionId, loopId, loopVersion, status: how, startedAt, endedAt, durationMs } = turn;
  const { error, reason, pending } = turn;
  const facts: (readonly [string, string | undefined])[] = [
    ['turn', turnId],
    ['session', sessionId],
    ['loop', `${loopId}@${loopVersion}`],
    ['status', turn.pid === undefined ? how : `${how} in process ${turn.pid}`],
    ['started', startedAt],
    ['ended', endedAt === undefined ? undefined : `${endedAt} (${duration(durationMs ?? 0)})`],
    ['reason', reason === undefined ? undefined : plain(reason)],
    ['error', error === undefined ? undefined : `${error.code}: ${plain(error.message)}`],
  ];
  const lines = facts.flatMap(([label, value]) => (value === undefined ? [] : [`${label.padEnd(8)} ${plain(value)}`]));
  const waits = (pending ?? []).flatMap(waitOf);
  const next = how === 'interrupted' ? [`Go on with: rondo resume ${plain(turnId)}`] : [];
  return `${[...lines, ...waits, ...next].join('\n')}\n`;
}
