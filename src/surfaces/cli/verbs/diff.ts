/** `diff`: where two turns differ. */
import type { Json } from '../../../protocol/json.js';
import type { TraceEvent } from '../../../protocol/trace.js';
import { diffTurns, type TurnEnd } from '../../../views/diff.js';
import { noDefinitions, settingsOf } from '../../compose.js';
import { Reach } from '../../owner/reach.js';
import { findTurn } from '../turn.js';
import { type Act, exit } from '../verb.js';

interface Side {
  readonly turnId: string;
  readonly events: readonly TraceEvent[];
  readonly end: TurnEnd;
}

export const diff: Act = async ({ args, asked, terminal, json }) => {
  const reach = new Reach(await settingsOf(asked), { definitions: noDefinitions, make: false });
  try {
    const a = await sideOf(reach, String(args[0]));
    const b = await sideOf(reach, String(args[1]));
    const found = diffTurns(a.events, b.events, { a: a.end, b: b.end });
    if (json) await terminal.json({ a: a.turnId, b: b.turnId, ...found });
    else {
      const { renderDiff } = await import('../diff.js');
      await terminal.print(`${renderDiff(found, terminal.look())}\n`);
    }
    return exit.ok;
  } finally {
    await reach.close();
  }
};

async function sideOf(reach: Reach, given: string): Promise<Side> {
  const { turnId, status } = await findTurn(reach, given);
  const events = await reach.ask((desk) => desk.trace(turnId));
  const { output, error } = (await reach.ask((desk) => desk.result(turnId))) ?? {};
  const end = {
    status,
    ...(output !== undefined && { output: output as Json }),
    ...(error !== undefined && { error }),
  };
  return { turnId, events, end };
}
