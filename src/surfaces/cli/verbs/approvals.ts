/** `rondo approvals`: lists the pending approvals. */
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

/** Handles `rondo approvals`. */
export const approvals: VerbHandler = async ({ options, settingsInput, terminal, json }) => {
  const settings = await loadSettings(settingsInput);
  const { host, close } = await openHostForReading(settings, terminal);
  try {
    const full = textOption(options.full);
    const pending = await host.archive.approvals(textOption(options.session));
    const listed = full === undefined ? pending : [requireSingleApproval(pending, full)];
    if (json) await terminal.printJson({ approvals: listed });
    else if (listed.length > 0) {
      const { renderTable } = await import('../table.js');
      const { color, width } = terminal.displayOf();
      const now = settings.clockStartAt ?? Date.now();
      const rows = listed.map((approval) => rowOf(approval, now));
      const cards = listed.map((approval) => {
        const lines = renderApproval(approval, {
          colors: createColors(color),
          width,
          now,
          full: full !== undefined,
        });
        const commands = isExpired(approval, now) ? ['  It can no longer be answered.'] : answerCommands(approval.id);
        return [...lines, ...commands].map((line) => `${line}\n`).join('');
      });
      await terminal.print([`${renderTable(rows, { color, width, head: TABLE_HEAD })}\n`, ...cards].join('\n'));
    }
    if (listed.length === 0) terminal.printToStderr('There are no pending approvals.');
    return exitCodes.ok;
  } finally {
    await close();
  }
};

/** Returns the approval that the reference matches. Throws a UsageError if it matches none or several. */
function requireSingleApproval(pending: readonly Approval[], reference: string): Approval {
  const matches = matchApprovals(pending, reference);
  const [only] = matches;
  if (only !== undefined && matches.length === 1) return only;
  const problem = only === undefined ? 'matches no pending approval' : `matches ${matches.length} approvals`;
  throw new UsageError(`"${escapeLine(reference, 100)}" ${problem}. See: rondo approvals`);
}

const TABLE_HEAD = ['APPROVAL', 'TOOL', 'EXPIRES', 'PATH'];

function rowOf(approval: Approval, now: number): string[] {
  const { id, tool, expiresAt } = approval;
  return [id, tool, isExpired(approval, now) ? 'expired' : expiresAt, loopPathOf(approval)];
}
