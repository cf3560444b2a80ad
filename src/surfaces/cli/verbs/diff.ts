/** `diff`: where two turns differ. */

import type { Host } from '../../../host/host.js';
import type { Json } from '../../../protocol/json.js';
import type { TraceEvent } from '../../../protocol/trace.js';
import { diffTurns, type TurnEnd } from '../../../views/diff.js';
import { settingsOf } from '../../compose.js';
import { hostToLook } from '../host.js';
import { findTurn } from '../turn.js';
import { type Act, exit } from '../verb.js';

interface Side {
  readonly turnId: string;
  readonly events: readonly TraceEvent[];
  readonly end: TurnEnd;
}

export const diff: Act = async ({ args, asked, terminal, json }) => {
  const { host, close } = await hostToLook(await settingsOf(asked), terminal);
  try {
    const a = await sideOf(host, String(args[0]));
    const b = await sideOf(host, String(args[1]));
    const found = diffTurns(a.events, b.events, { a: a.end, b: b.end });
    if (json) await terminal.json({ a: a.turnId, b: b.turnId, ...found });
    else {
      const { renderDiff } = await import('../diff.js');
      await terminal.print(`${renderDiff(found, terminal.look())}\n`);
    }
    return exit.ok;
  } finally {
    await close();
  }
};

async function sideOf(host: Host, given: string): Promise<Side> {
  const { turnId, status } = await findTurn(host, given);
  const events = await host.archive.trace(turnId);
  const { output, error } = (await host.archive.result(turnId)) ?? {};
  const end = {
    status,
    ...(output !== undefined && { output: output as Json }),
    ...(error !== undefined && { error }),
  };
  return { turnId, events, end };
}
