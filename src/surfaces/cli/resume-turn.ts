/** Resumes a turn after something was recorded for it: an answer to an approval, or a signal. */
import { LoopError } from '../../base/errors.js';
import type { Host } from '../../host/host.js';
import type { TurnResult } from '../../protocol/trace.js';
import type { ProjectSettings } from '../compose.js';
import { runWithLiveOutput } from './live-run.js';
import { outcomeLines, summaryLineOf } from './outcome.js';
import { pricingOf } from './pricing.js';
import type { Terminal } from './terminal.js';
import { sanitizeText } from './terminal-text.js';

/** The result of the resumed turn, or the reason why it cannot be resumed here. */
export type ResumedTurn =
  | { readonly turn: TurnResult }
  | { readonly error: { readonly code: string; readonly message: string } };

/** What a turn is resumed with. */
export interface ResumeContext {
  readonly host: Host;
  readonly settings: ProjectSettings;
  readonly terminal: Terminal;
}

/**
 * Resumes a turn and prints its outcome to stderr. If it cannot be resumed, prints the reason and `recordedNote`,
 * which states what stays recorded.
 */
export async function resumeTurn(
  turnId: string,
  { host, settings, terminal }: ResumeContext,
  recordedNote: string,
): Promise<ResumedTurn> {
  try {
    const live = { terminal, price: pricingOf(settings.config), watch: false };
    const turn = await runWithLiveOutput(live, (turnOptions) => host.resume(turnId, turnOptions));
    for (const line of outcomeLines(turn, terminal.streams)) terminal.printToStderr(line);
    terminal.printToStderr(summaryLineOf(turn));
    return { turn };
  } catch (thrown) {
    if (!(thrown instanceof LoopError)) throw thrown;
    const { code, message } = thrown;
    terminal.printToStderr(`The turn cannot be resumed here. ${code}: ${sanitizeText(message)}`);
    terminal.printToStderr(`${recordedNote} When the problem is fixed: rondo resume ${sanitizeText(turnId)}`);
    terminal.printToStderr('A worker that has the loop, in any process, continues it too.');
    return { error: { code, message } };
  }
}
