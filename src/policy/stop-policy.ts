/**
 * The stop policy of a hosted loop: decides, outside of the model, whether another turn may follow. A condition that
 * cannot be evaluated stops the loop.
 */
import { followSegments } from '../json/path/query.js';
import { compileJsonPath } from '../json/path.js';
import { jsonEquals } from '../json/value.js';
import type { HostedLoopDocument, HostedStopReason, TerminalStop } from '../protocol/hosted-loop.js';
import type { Json } from '../protocol/json.js';

/** Why a hosted loop stops. */
export interface HostedStop {
  readonly reason: HostedStopReason;
  readonly message: string;
}

/** What is known about a turn that has ended. */
export interface EndedTurnFacts {
  /** How many turns the loop has had. */
  readonly turns: number;
  readonly now: number;
  readonly status: 'ok' | 'error' | 'stopped' | 'cancelled';
  /** The validated output of a successful turn. */
  readonly output?: Json | undefined;
  /** The code of the error of a failed turn. */
  readonly code?: string | undefined;
  /** True if an approval of the turn was denied or expired. */
  readonly wasDenied: boolean;
  /** How many turns in a row brought no new output, this one included. */
  readonly unchanged: number;
  /** How many turns in a row have failed, this one included. */
  readonly failures: number;
}

type Rule = (document: HostedLoopDocument, facts: EndedTurnFacts) => HostedStop | undefined;

/** The conditions after a turn, in the order in which they are reported. */
const RULES: readonly Rule[] = [stopOfApproval, stopOfFailure, stopOfTerminal, stopOfConfidence, stopOfNoProgress];

/** Returns why the loop stops after a turn; undefined if another one may follow. */
export function stopAfterTurn(document: HostedLoopDocument, facts: EndedTurnFacts): HostedStop | undefined {
  for (const rule of RULES) {
    const stop = rule(document, facts);
    if (stop !== undefined) return stop;
  }
  return stopBeforeTurn(document, facts);
}

/** Returns why no further turn may be requested; undefined if one may. */
export function stopBeforeTurn(
  { stop: { maxTurns, deadline } }: HostedLoopDocument,
  { turns, now }: Pick<EndedTurnFacts, 'turns' | 'now'>,
): HostedStop | undefined {
  // guard: no-turn-above-the-maximum
  if (!(turns < maxTurns)) return { reason: 'max_turns', message: `It has had ${turns} of ${maxTurns} turns.` };
  // guard: no-turn-after-the-deadline
  if (deadline !== undefined && !(now < Date.parse(deadline)))
    return { reason: 'deadline', message: `The deadline ${deadline} has passed.` };
  return undefined;
}

function stopOfApproval(
  { stop: { approval } }: HostedLoopDocument,
  { wasDenied }: EndedTurnFacts,
): HostedStop | undefined {
  // guard: denied-approval-stops
  if (!wasDenied || approval === 'ignore') return undefined;
  return { reason: 'approval', message: 'An approval of the last turn was denied or has expired.' };
}

function stopOfFailure(
  { retry }: HostedLoopDocument,
  { status, code, failures }: EndedTurnFacts,
): HostedStop | undefined {
  // guard: failed-turn-stops
  if (status === 'ok' || failures < (retry?.maxFailures ?? 1)) return undefined;
  const why = code === undefined ? `ended as ${status}` : `failed with ${code}`;
  const count = failures === 1 ? 'The last turn' : `The last ${failures} turns failed; the last one`;
  return { reason: 'turn_failed', message: `${count} ${why}.` };
}

function stopOfTerminal({ stop: { terminal } }: HostedLoopDocument, facts: EndedTurnFacts): HostedStop | undefined {
  // guard: terminal-output-stops
  if (terminal === undefined || !isTerminal(terminal, facts)) return undefined;
  return { reason: 'terminal', message: `The output has ${JSON.stringify(terminal.equals)} at ${terminal.path}.` };
}

/** True if the output of a successful turn has a value at a path. An output without the path is not terminal. */
export function isTerminal(
  { path, equals }: TerminalStop,
  { status, output }: Pick<EndedTurnFacts, 'status' | 'output'>,
): boolean {
  const value = valueAt(output, path);
  return status === 'ok' && value !== undefined && jsonEquals(value, equals);
}

function stopOfConfidence(
  { stop: { confidence } }: HostedLoopDocument,
  { status, output }: EndedTurnFacts,
): HostedStop | undefined {
  if (confidence === undefined || status !== 'ok') return undefined;
  const { path, atLeast } = confidence;
  const value = valueAt(output, path);
  // guard: unknown-confidence-stops
  if (typeof value !== 'number' || !Number.isFinite(value))
    return { reason: 'confidence', message: `The output has no number at ${path}.` };
  // guard: reached-confidence-stops
  return value >= atLeast
    ? { reason: 'confidence', message: `The confidence ${value} is at least ${atLeast}.` }
    : undefined;
}

function stopOfNoProgress(
  { stop: { noProgress } }: HostedLoopDocument,
  { unchanged }: EndedTurnFacts,
): HostedStop | undefined {
  // guard: no-progress-stops
  if (noProgress === undefined || unchanged < noProgress) return undefined;
  const turns = unchanged === 1 ? 'The last turn' : `The last ${unchanged} turns`;
  return { reason: 'no_progress', message: `${turns} brought no new output.` };
}

/** Returns the value at a path that selects at most one; undefined if there is none. */
export function valueAt(value: Json | undefined, path: string): Json | undefined {
  const { singularSegments } = compileJsonPath(path, 'the path');
  return value === undefined || singularSegments === undefined ? undefined : followSegments(value, singularSegments);
}
