/** `approvals`: all that waits for an answer, with what it is about. */
import type { Approval } from '../../../protocol/approval.js';
import { loadSettings } from '../../compose.js';
import { UsageError } from '../../settings.js';
import { openHostForReading } from '../open-host.js';
import { answerCommands } from '../outcome.js';
import { isExpired, loopPathOf, renderApproval } from '../render-approval.js';
import { createColors } from '../terminal-text.js';
import { escapeLine } from '../untrusted-text.js';
import { exitCodes, textOption, type VerbHandler } from '../verb.js';
import { matchApprovals } from './answer.js';

export const approvals: VerbHandler = async ({ options, settingsInput, terminal, json }) => {
  const settings = await loadSettings(settingsInput);
  const { host, close } = await openHostForReading(settings, terminal);
  try {
    const full = textOption(options.full);
    const waiting = await host.archive.approvals(textOption(options.session));
    const all = full === undefined ? waiting : [requireSingleApproval(waiting, full)];
    if (json) await terminal.printJson(all);
    else if (all.length > 0) {
      const { renderTable } = await import('../table.js');
      const { color, width } = terminal.displayOf();
      const now = settings.clockStartAt ?? Date.now();
      const rows = all.map((approval) => rowOf(approval, now));
      const cards = all.map((approval) => {
        const lines = renderApproval(approval, {
          colors: createColors(color),
          width,
          now,
          full: full !== undefined,
        });
        const answers = isExpired(approval, now) ? ['  Nobody can answer it any more.'] : answerCommands(approval.id);
        return [...lines, ...answers].map((line) => `${line}\n`).join('');
      });
      await terminal.print([`${renderTable(rows, { color, width, head: TABLE_HEAD })}\n`, ...cards].join('\n'));
    }
    if (all.length === 0) terminal.printToStderr('Nothing waits for an approval.');
    return exitCodes.ok;
  } finally {
    await close();
  }
};

/** The one approval that is meant. */
function requireSingleApproval(waiting: readonly Approval[], given: string): Approval {
  const meant = matchApprovals(waiting, given);
  const [only] = meant;
  if (only !== undefined && meant.length === 1) return only;
  const why = only === undefined ? 'waits for nobody' : `could be any of ${meant.length} approvals`;
  throw new UsageError(`"${escapeLine(given, 100)}" ${why}. See: rondo approvals`);
}

const TABLE_HEAD = ['APPROVAL', 'TOOL', 'EXPIRES', 'PATH'];

function rowOf(approval: Approval, now: number): string[] {
  const { id, tool, expiresAt } = approval;
  return [id, tool, isExpired(approval, now) ? 'expired' : expiresAt, loopPathOf(approval)];
}
