/** `rondo runs`: lists the turns of the store, the newest first. */
import { shortVersion } from '../../../base/short-version.js';
import type { TurnStatus } from '../../../protocol/trace.js';
import { loadSettings } from '../../compose.js';
import { UsageError } from '../../settings.js';
import { openHostForReading } from '../open-host.js';
import { relativeTime } from '../relative-time.js';
import type { Terminal } from '../terminal.js';
import { formatDuration } from '../terminal-text.js';
import { exitCodes, textOption, type VerbHandler, type VerbOptions } from '../verb.js';

const STATUSES: readonly string[] = ['ok', 'error', 'stopped', 'cancelled', 'paused', 'running', 'interrupted'];
/** The default limit of the table. JSON output has none. */
const DEFAULT_LIMIT = 50;

/** Handles `rondo runs`. */
export const runs: VerbHandler = async ({ options, settingsInput, terminal, json }) => {
  const [statusFilter, limit] = [statusFilterOf(options), limitOf(options)];
  const settings = await loadSettings(settingsInput);
  const { host, close } = await openHostForReading(settings, terminal);
  try {
    const turns = (await host.archive.turns()).toReversed();
    const matching = turns.filter(({ status }) => statusFilter === undefined || status === statusFilter);
    const shown = matching.slice(0, limit ?? (json ? undefined : DEFAULT_LIMIT));
    if (json) await terminal.printJson({ runs: shown });
    else if (shown.length > 0) {
      const { renderTable } = await import('../table.js');
      await terminal.print(
        `${renderTable(
          shown.map((turn) => rowOf(turn, Date.now())),
          { ...displayOf(terminal), head: TABLE_HEAD },
        )}\n`,
      );
    }
    if (matching.length > shown.length)
      terminal.printToStderr(`${matching.length - shown.length} older turns are not shown (see --limit).`);
    if (matching.length === 0) terminal.printToStderr('There are no runs.');
    return exitCodes.ok;
  } finally {
    await close();
  }
};

/** Returns how the table is displayed. A program that reads it gets complete ids. */
function displayOf(terminal: Terminal): { readonly color: boolean; readonly width: number } {
  const display = terminal.displayOf();
  return terminal.streams.stdout.isTTY === true ? display : { ...display, width: Number.POSITIVE_INFINITY };
}

const TABLE_HEAD = ['TURN', 'LOOP', 'STATUS', 'STARTED', 'TOOK', ''];

function rowOf(turn: TurnStatus, now: number): string[] {
  const { turnId, loopId, loopVersion, status, startedAt, durationMs, error, reason } = turn;
  const took = durationMs === undefined ? '' : formatDuration(durationMs);
  const loop = loopId === '' ? '' : `${loopId}@${shortVersion(loopVersion)}`;
  const started = relativeTime(startedAt, now);
  return [turnId, loop, status, started, took, error?.code ?? reason ?? pendingSummary(turn)];
}

/** Returns what a turn waits for, in a few words; empty for a turn that waits for nothing. */
export function pendingSummary({ pending = [] }: Pick<TurnStatus, 'pending'>): string {
  const approvalCount = pending.filter(({ kind }) => kind === 'approval').length;
  const waits = [
    ...(approvalCount === 0 ? [] : [approvalCount === 1 ? 'an approval' : `${approvalCount} approvals`]),
    ...pending.flatMap(({ kind, name = '' }) => (kind === 'signal' ? [`signal ${name}`] : [])),
    ...pending.flatMap(({ kind, name = '' }) => (kind === 'doubt' ? [`a resolution of ${name}`] : [])),
    ...pending.flatMap(({ kind, until = '' }) => (kind === 'timer' ? [`a timer until ${until}`] : [])),
  ];
  return waits.length === 0 ? '' : `waits for ${waits.join(', ')}`;
}

function statusFilterOf({ status }: VerbOptions): string | undefined {
  const text = textOption(status);
  if (text === undefined || STATUSES.includes(text)) return text;
  throw new UsageError(`--status must be one of ${STATUSES.join(', ')}.`);
}

function limitOf({ limit }: VerbOptions): number | undefined {
  const text = textOption(limit);
  if (text === undefined) return undefined;
  if (/^\d{1,9}$/.test(text)) return Number(text);
  throw new UsageError('--limit must be a whole number, 0 or greater.');
}
