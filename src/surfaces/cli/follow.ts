/**
 * Follows a turn or a session in any process, for `--follow`: what is recorded first, then everything new, until the
 * turn or all turns of the session have ended, or stdout is closed.
 */
import type { FollowedEntries } from '../../host/follow-entries.js';
import { type FollowedEnvelopes, followEnvelopes } from '../../host/follow-envelopes.js';
import type { Host } from '../../host/host.js';
import { sessionIdOf } from '../../host/turn-result.js';
import type { EventEnvelope } from '../../protocol/events.js';
import type { TraceEvent } from '../../protocol/trace.js';
import { TraceBuilder } from '../../views/trace.js';
import { Turns } from '../../views/turns.js';
import type { Terminal } from './terminal.js';

/** Passes the trace events of a turn to `print`, in order and without repetition, until the turn has ended. */
export async function followTrace(
  host: Host,
  turnId: string,
  terminal: Terminal,
  print: (events: readonly TraceEvent[]) => Promise<void>,
): Promise<void> {
  let fresh: TraceEvent[] = [];
  let printedCount = 0;
  let builtCount = 0;
  const createBuilder = (): TraceBuilder => {
    builtCount = 0;
    // After a restart, the events that were printed before are not printed again.
    return new TraceBuilder(turnId, (event) => (++builtCount > printedCount ? void fresh.push(event) : undefined));
  };
  let builder = createBuilder();
  const isEnded = (turns: Turns): boolean => turns.get(turnId)?.endedEntry !== undefined;
  const follow = (signal: AbortSignal): AsyncIterable<FollowedEntries> =>
    host.followEntries(sessionIdOf(turnId), signal);
  await followTurns(follow, terminal, isEnded, async ({ entries, isRestart }) => {
    if (isRestart) builder = createBuilder();
    for (const entry of entries) builder.apply(entry);
    const events = fresh;
    fresh = [];
    printedCount = Math.max(printedCount, builtCount);
    if (events.length > 0) await print(events);
  });
}

/**
 * Passes the envelopes of a session to `print` until all its turns have ended. An envelope that changes, such as a tool
 * call that is approved, is passed again.
 */
export async function followConversation(
  host: Host,
  sessionId: string,
  terminal: Terminal,
  print: (envelopes: readonly EventEnvelope[]) => Promise<void>,
): Promise<void> {
  const areEnded = (turns: Turns): boolean =>
    turns.turnIds().every((turnId) => turns.get(turnId)?.endedEntry !== undefined);
  const follow = (signal: AbortSignal): AsyncIterable<FollowedEnvelopes> =>
    followEnvelopes(sessionId, host.followEntries(sessionId, signal));
  await followTurns(follow, terminal, areEnded, async ({ envelopes }) => {
    if (envelopes.length > 0) await print(envelopes);
  });
}

async function followTurns<F extends FollowedEntries>(
  follow: (signal: AbortSignal) => AsyncIterable<F>,
  terminal: Terminal,
  isEnded: (turns: Turns) => boolean,
  receive: (followed: F) => Promise<void>,
): Promise<void> {
  const controller = new AbortController();
  let turns = new Turns();
  for await (const followed of follow(controller.signal)) {
    if (followed.isRestart) turns = new Turns();
    for (const entry of followed.entries) turns.apply(entry);
    await receive(followed);
    if (isEnded(turns) || terminal.isStdoutClosed) return controller.abort();
  }
}
