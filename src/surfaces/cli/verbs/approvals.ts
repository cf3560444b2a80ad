/** `approvals`: all that waits for an answer, with what it is about. */
import type { Approval } from '../../../protocol/approval.js';
import { settingsOf } from '../../compose.js';
import { UsageError } from '../../settings.js';
import { cardOf, isExpired, pathOf } from '../card.js';
import { hostToLook } from '../host.js';
import { answersOf } from '../outcome.js';
import { paint } from '../paint.js';
import { inLine } from '../untrusted.js';
import { type Act, exit, textOf } from '../verb.js';
import { approvalsNamed } from './decide.js';

export const approvals: Act = async ({ options, asked, terminal, json }) => {
  const settings = await settingsOf(asked);
  const { host, close } = await hostToLook(settings, terminal);
  try {
    const full = textOf(options.full);
    const waiting = await host.archive.approvals(textOf(options.session));
    const all = full === undefined ? waiting : [oneOf(waiting, full)];
    if (json) await terminal.json(all);
    else if (all.length > 0) {
      const { table } = await import('../table.js');
      const { color, width } = terminal.look();
      const now = settings.now ?? Date.now();
      const rows = all.map((approval) => rowOf(approval, now));
      const cards = all.map((approval) => {
        const lines = cardOf(approval, { colors: paint(color), width, now, full: full !== undefined });
        const answers = isExpired(approval, now) ? ['  Nobody can answer it any more.'] : answersOf(approval.id);
        return [...lines, ...answers].map((line) => `${line}\n`).join('');
      });
      await terminal.print([`${table(rows, { color, width, head: HEAD })}\n`, ...cards].join('\n'));
    }
    if (all.length === 0) terminal.say('Nothing waits for an approval.');
    return exit.ok;
  } finally {
    await close();
  }
};

/** The one approval that is meant. */
function oneOf(waiting: readonly Approval[], given: string): Approval {
  const meant = approvalsNamed(waiting, given);
  const [only] = meant;
  if (only !== undefined && meant.length === 1) return only;
  const why = only === undefined ? 'waits for nobody' : `could be any of ${meant.length} approvals`;
  throw new UsageError(`"${inLine(given, 100)}" ${why}. See: rondo approvals`);
}

const HEAD = ['APPROVAL', 'TOOL', 'EXPIRES', 'PATH'];

function rowOf(approval: Approval, now: number): string[] {
  const { id, tool, expiresAt } = approval;
  return [id, tool, isExpired(approval, now) ? 'expired' : expiresAt, pathOf(approval)];
}
