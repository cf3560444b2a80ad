/** `rondo trace`: shows the trace of a turn as a tree, or with `--json` as one JSON event per line. */
import type { Host } from '../../../host/host.js';
import type { TraceEvent } from '../../../protocol/trace.js';
import { loadSettings, type ProjectSettings } from '../../compose.js';
import { findTurn } from '../find-turn.js';
import { followTrace } from '../follow.js';
import { openHostForReading } from '../open-host.js';
import { pricingOf } from '../pricing.js';
import type { Terminal } from '../terminal.js';
import { exitCodes, type VerbHandler } from '../verb.js';

/** Handles `rondo trace`. */
export const trace: VerbHandler = async ({ args, options, settingsInput, terminal, json }) => {
  const settings = await loadSettings(settingsInput);
  const { host, close } = await openHostForReading(settings, terminal);
  try {
    const { turnId } = await findTurn(host, String(args[0]));
    if (options.follow === true) await follow(host, turnId, { terminal, settings, json });
    else if (json) await terminal.printJsonLines(await host.archive.trace(turnId));
    else await printTree(host, turnId, { terminal, settings, isFull: options.full === true });
    return exitCodes.ok;
  } finally {
    await close();
  }
};

interface PrintTreeOptions {
  readonly terminal: Terminal;
  readonly settings: ProjectSettings;
  readonly isFull: boolean;
}

async function printTree(host: Host, turnId: string, { terminal, settings, isFull }: PrintTreeOptions): Promise<void> {
  const { renderTree } = await import('../render-tree.js');
  const { CallDetailRows, SHORTENED_HINT } = await import('../render-details.js');
  const maxRows = isFull ? Number.POSITIVE_INFINITY : 1;
  const rows = new CallDetailRows(await host.archive.calls(turnId), { maxRows });
  const details = (callId: string, columns: number) => rows.rowsOf(callId, columns);
  const options = { ...terminal.displayOf(), price: pricingOf(settings.config), details, full: isFull };
  await terminal.print(`${renderTree(await host.archive.trace(turnId), options)}\n`);
  if (rows.hasShortened) terminal.printToStderr(SHORTENED_HINT);
}

interface FollowOptions {
  readonly terminal: Terminal;
  readonly settings: ProjectSettings;
  readonly json: boolean;
}

/** Prints the events of a turn as they happen: as JSON lines, or as a live tree. */
async function follow(host: Host, turnId: string, { terminal, settings, json }: FollowOptions): Promise<void> {
  if (json) return followTrace(host, turnId, terminal, (events) => terminal.printJsonLines(events));
  const { LiveTree } = await import('../live-tree.js');
  const { stdout } = terminal.streams;
  const price = pricingOf(settings.config);
  const tree = new LiveTree(stdout, { color: terminal.displayOf().color, price, now: Date.now });
  terminal.onInterrupt = () => {
    tree.end();
    return 'Interrupted. The turn continues.';
  };
  const apply = async (events: readonly TraceEvent[]): Promise<void> => {
    for (const event of events) tree.apply(event);
  };
  await followTrace(host, turnId, terminal, apply);
  terminal.onInterrupt = undefined;
  tree.end();
}
