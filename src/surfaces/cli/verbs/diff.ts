/** `rondo diff`: shows the differences between two turns. */
import type { Host } from '../../../host/host.js';
import type { Json } from '../../../protocol/json.js';
import type { TraceEvent } from '../../../protocol/trace.js';
import { diffTurns, type TurnEnd } from '../../../views/turn-diff.js';
import { loadSettings } from '../../compose.js';
import { findTurn } from '../find-turn.js';
import { openHostForReading } from '../open-host.js';
import { exitCodes, type VerbHandler } from '../verb.js';

interface DiffSide {
  readonly turnId: string;
  readonly events: readonly TraceEvent[];
  readonly end: TurnEnd;
}

/** Handles `rondo diff`. */
export const diff: VerbHandler = async ({ args, settingsInput, terminal, json }) => {
  const { host, close } = await openHostForReading(await loadSettings(settingsInput), terminal);
  try {
    const a = await loadSide(host, String(args[0]));
    const b = await loadSide(host, String(args[1]));
    const turnDiff = diffTurns(a.events, b.events, { a: a.end, b: b.end });
    if (json) await terminal.printJson({ a: a.turnId, b: b.turnId, ...turnDiff });
    else {
      const { renderDiff } = await import('../render-diff.js');
      await terminal.print(`${renderDiff(turnDiff, terminal.displayOf())}\n`);
    }
    return exitCodes.ok;
  } finally {
    await close();
  }
};

async function loadSide(host: Host, reference: string): Promise<DiffSide> {
  const { turnId, status } = await findTurn(host, reference);
  const events = await host.archive.trace(turnId);
  const result = await host.archive.result(turnId);
  const end = {
    status,
    ...(result?.status === 'ok' && { output: result.output as Json }),
    ...((result?.status === 'error' || result?.status === 'cancelled') && { error: result.error }),
  };
  return { turnId, events, end };
}
