/** `approvals`: all that waits for an answer, with what it is about. */
import type { Approval } from '../../../protocol/approval.js';
import { settingsOf } from '../../compose.js';
import { cardOf, isExpired, pathOf } from '../card.js';
import { hostToLook } from '../host.js';
import { answersOf } from '../outcome.js';
import { paint } from '../paint.js';
import { type Act, exit, textOf } from '../verb.js';

export const approvals: Act = async ({ options, asked, terminal, json }) => {
  const settings = await settingsOf(asked);
  const { host, close } = await hostToLook(settings, terminal);
  try {
    const all = await host.archive.approvals(textOf(options.session));
    if (json) await terminal.json(all);
    else if (all.length > 0) {
      const { table } = await import('../table.js');
      const { color, width } = terminal.look();
      const now = settings.now ?? Date.now();
      const rows = all.map((approval) => rowOf(approval, now));
      const cards = all.map((approval) => {
        const lines = cardOf(approval, { colors: paint(color), width, now });
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

const HEAD = ['APPROVAL', 'TOOL', 'EXPIRES', 'PATH'];

function rowOf(approval: Approval, now: number): string[] {
  const { id, tool, expiresAt } = approval;
  return [id, tool, isExpired(approval, now) ? 'expired' : expiresAt, pathOf(approval)];
}
