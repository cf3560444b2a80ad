/** `runs`: all turns of the store, the newest first. */
import type { TurnStatus } from '../../../protocol/trace.js';
import { settingsOf } from '../../compose.js';
import { UsageError } from '../../settings.js';
import { hostToLook } from '../host.js';
import { duration } from '../paint.js';
import { type Act, exit, type Options, textOf } from '../verb.js';

const statuses: readonly string[] = ['ok', 'error', 'stopped', 'paused', 'running', 'interrupted'];
/** How many a person is shown unless told. */
const USUAL = 50;

export const runs: Act = async ({ options, asked, terminal, json }) => {
  const [wanted, limit] = [statusOf(options), limitOf(options)];
  const settings = await settingsOf(asked);
  const { host, close } = await hostToLook(settings, terminal);
  try {
    const all = (await host.archive.turns()).toReversed();
    const meant = all.filter(({ status }) => wanted === undefined || status === wanted);
    const shown = meant.slice(0, limit ?? (json ? undefined : USUAL));
    if (json) await terminal.json({ runs: shown });
    else if (shown.length > 0) {
      const { table } = await import('../table.js');
      await terminal.print(`${table(shown.map(rowOf), { ...terminal.look(), head: HEAD })}\n`);
    }
    if (meant.length > shown.length) terminal.say(`${meant.length - shown.length} older ones are not shown (--limit).`);
    if (meant.length === 0) terminal.say('There are no runs.');
    return exit.ok;
  } finally {
    await close();
  }
};

const HEAD = ['TURN', 'LOOP', 'STATUS', 'STARTED', 'TOOK', ''];

function rowOf(turn: TurnStatus): string[] {
  const { turnId, loopId, loopVersion, status, startedAt, durationMs, error, reason } = turn;
  const took = durationMs === undefined ? '' : duration(durationMs);
  return [turnId, `${loopId}@${loopVersion}`, status, startedAt, took, error?.code ?? reason ?? waitsOf(turn)];
}

function waitsOf({ pending = [] }: TurnStatus): string {
  const asked = pending.filter(({ kind }) => kind === 'approval').length;
  if (asked === 0) return '';
  return asked === 1 ? 'waits for an approval' : `waits for ${asked} approvals`;
}

function statusOf({ status }: Options): string | undefined {
  const text = textOf(status);
  if (text === undefined || statuses.includes(text)) return text;
  throw new UsageError(`--status must be one of ${statuses.join(', ')}.`);
}

function limitOf({ limit }: Options): number | undefined {
  const text = textOf(limit);
  if (text === undefined) return undefined;
  if (/^\d{1,9}$/.test(text)) return Number(text);
  throw new UsageError('--limit must be a number from 0 up.');
}
