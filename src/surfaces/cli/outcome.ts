/** How a turn ended, for people: what came of it, where it failed, and what to do next. */
import type { PendingItem, TraceEvent, TurnResult } from '../../protocol/trace.js';
import { exitCodeOfError } from './error-report.js';
import { formatDuration, sanitizeMessage, sanitizeText } from './terminal-text.js';
import { exitCodes } from './verb.js';

export function exitCodeOf({ status, error }: Pick<TurnResult, 'status' | 'error'>): number {
  if (status === 'ok') return exitCodes.ok;
  if (status === 'paused') return exitCodes.paused;
  return error === undefined ? exitCodes.failed : exitCodeOfError(error.code);
}

/** Status, duration, turn and tokens in one line. */
export function summaryLineOf({ status, durationMs, turnId, trace }: TurnResult): string {
  const tokens = tokenTotalsOf(trace);
  const used = tokens === undefined ? '' : `, ${tokens.input} tokens in, ${tokens.output} out`;
  // What was refused before it began has left no turn to look at.
  const which = trace.length === 0 && status === 'error' ? '' : `, turn ${sanitizeText(turnId)}`;
  return `${status} after ${formatDuration(durationMs)}${which}${used}`;
}

/** Sums up what the models of a trace read and wrote; undefined if none was asked. */
function tokenTotalsOf(trace: readonly TraceEvent[]): { input: number; output: number } | undefined {
  const answers = trace.filter(({ type }) => /^(?:call|rondo)\.backend\.responded$/.test(type));
  if (answers.length === 0) return undefined;
  const sum = { input: 0, output: 0 };
  for (const { payload } of answers) {
    const { inputTokens = 0, outputTokens = 0 } = (payload ?? {}) as { inputTokens?: number; outputTokens?: number };
    sum.input += inputTokens;
    sum.output += outputTokens;
  }
  return sum;
}

/** What went wrong and where, or what is waited for, and what to do next. */
export function outcomeLines(result: TurnResult): readonly string[] {
  const { status, error, pending = [], turnId, reason } = result;
  if (status === 'paused') return [...pending.flatMap(pendingLines), ...nextStepLines(pending, turnId)];
  if (status === 'stopped') return [`Stopped: ${sanitizeText(reason ?? 'no reason was given')}`];
  if (error === undefined) return [];
  return [
    `${sanitizeText(error.code)}: ${sanitizeMessage(error.message)}`,
    ...failedStepLines(error.details),
    ...adviceLines(result, error.code),
  ];
}

/** An answer to an approval goes on with the turn by itself; whatever else there is does not. */
function nextStepLines(pending: readonly PendingItem[], turnId: string): readonly string[] {
  const others = pending.length === 0 || pending.some(({ kind }) => kind !== 'approval');
  return others ? [`Then: rondo resume ${sanitizeText(turnId)}`] : ['What they are about: rondo approvals'];
}

/** How an approval is answered. */
export function answerCommands(id: string): readonly string[] {
  return [`  rondo approve ${id}`, `  rondo deny ${id} --reason TEXT`];
}

/** What a turn waits for, and how it is given. */
export function pendingLines({ kind, name, until, id = '', ...item }: PendingItem): readonly string[] {
  const key = sanitizeText(item.key);
  if (kind === 'timer') return [`Waits until ${until} (${key}).`];
  if (kind === 'approval')
    return [`Waits for approval ${sanitizeText(id)}. Answer with one of:`, ...answerCommands(sanitizeText(id))];
  if (kind === 'signal') return [`Waits for the signal "${sanitizeText(name ?? '')}" (${key}).`];
  return [
    `It is unknown whether "${sanitizeText(name ?? '')}" happened (${key}). Find out, then say so:`,
    `  rondo resolve ${key} --retry           it did not happen: do it`,
    `  rondo resolve ${key} --result JSON     it happened, and this came of it`,
    `  rondo resolve ${key} --fail            give it up`,
  ];
}

function failedStepLines(details: unknown): readonly string[] {
  const { failedStep } = (details ?? {}) as { failedStep?: { stepIndex?: number; loopId?: string; callId?: string } };
  if (failedStep === undefined) return [];
  const { stepIndex, loopId = '', callId } = failedStep;
  return [`Where: step ${stepIndex} (${sanitizeText(loopId)}), call ${sanitizeText(callId ?? '')}`];
}

function adviceLines({ loopId, turnId, trace }: TurnResult, code: string): readonly string[] {
  if (code === 'LOOP_NOT_FOUND' && trace.length === 0) return ['Next: rondo list'];
  if (code === 'INPUT_VALIDATION_FAILED') return [`Next: rondo show ${sanitizeText(loopId)}`];
  if (code === 'KEY_CONFLICT') return ['Next: choose another --key, or give the same input and --as again.'];
  if (code === 'REPLAY_MISMATCH') {
    return ['The code is not what it was. The turn stands where it stood; bring the old code back, then resume it.'];
  }
  return trace.length === 0 ? [] : [`Next: rondo trace ${sanitizeText(turnId)}`];
}
