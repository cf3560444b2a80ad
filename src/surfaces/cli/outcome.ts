/** Describes the result of a turn in messages for the terminal: the error, the pending items, and the next command. */
import { firstLocationOf } from '../../base/error-stack.js';
import { signalNameProblem } from '../../loops/signal-name.js';
import type { PendingItem, TraceEvent, TurnResult } from '../../protocol/trace.js';
import { exitCodeOfError } from './error-report.js';
import { formatDuration, sanitizeMessage, sanitizeText } from './terminal-text.js';
import { exitCodes } from './verb.js';

/** Returns the exit code of a turn's result. */
export function exitCodeOf(result: TurnResult): number {
  if (result.status === 'ok') return exitCodes.ok;
  if (result.status === 'paused') return exitCodes.paused;
  return result.status === 'error' ? exitCodeOfError(result.error.code) : exitCodes.failed;
}

/** Returns status, duration, turn and tokens in one line. */
export function summaryLineOf({ status, durationMs, turnId, trace }: TurnResult): string {
  const totals = tokenTotalsOf(trace);
  const tokens = totals === undefined ? '' : `, ${totals.input} tokens in, ${totals.output} out`;
  // A turn that was refused before it started is not in the journal.
  const turn = trace.length === 0 && status === 'error' ? '' : `, turn ${sanitizeText(turnId)}`;
  return `${status} after ${formatDuration(durationMs)}${turn}${tokens}`;
}

/** Returns the sums of input and output tokens in a trace; undefined without model calls. */
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

/**
 * Returns the lines that explain a result: the error with its location, or the pending items, and the next command.
 * `continuesTimers`: this process continues the turn when its timer fires, so no command is needed.
 */
export function outcomeLines(
  result: TurnResult,
  { cwd, continuesTimers = false }: { readonly cwd: string; readonly continuesTimers?: boolean },
): readonly string[] {
  if (result.status === 'ok') return [];
  if (result.status === 'paused')
    return [...result.pending.flatMap(pendingLines), ...nextStepLines(result.pending, result.turnId, continuesTimers)];
  if (result.status === 'stopped') return [`Stopped: ${sanitizeText(result.reason)}`];
  if (result.status === 'cancelled') return [`Cancelled: ${sanitizeText(result.reason)}`];
  const { error } = result;
  return [
    `${sanitizeText(error.code)}: ${sanitizeMessage(error.message)}`,
    ...locationLines(error.stack, cwd),
    ...failedStepLines(error.details),
    ...adviceLines(result, error.code),
  ];
}

/** Returns the first place in the user's code of a stack, relative to the working directory; no line if there is none. */
export function locationLines(stack: string | undefined, cwd: string): readonly string[] {
  const location = stack === undefined ? undefined : firstLocationOf(stack);
  if (location === undefined) return [];
  const directory = `${cwd}/`;
  return [`at ${sanitizeText(location.startsWith(directory) ? location.slice(directory.length) : location)}`];
}

/** Returns the next command. `approve`, `deny` and `signal` resume the turn; other items need `rondo resume`. */
function nextStepLines(pending: readonly PendingItem[], turnId: string, continuesTimers: boolean): readonly string[] {
  const kinds = new Set(pending.map(({ kind }) => kind));
  const needsResume = pending.length === 0 || kinds.has('doubt');
  if (kinds.has('timer') && !continuesTimers && !kinds.has('doubt'))
    return [`When it is due: rondo resume ${sanitizeText(turnId)}. A process of rondo worker continues it by itself.`];
  if (needsResume) return [`Then: rondo resume ${sanitizeText(turnId)}`];
  return kinds.has('approval') ? ['For details: rondo approvals'] : [];
}

/** Returns the commands that answer an approval. */
export function answerCommands(id: string): readonly string[] {
  return [`  rondo approve ${id}`, `  rondo deny ${id} --reason TEXT`];
}

/** Describes a pending item and the commands that settle it. */
export function pendingLines({ kind, name, until, id = '', ...item }: PendingItem): readonly string[] {
  const key = sanitizeText(item.key);
  if (kind === 'timer') return [`Waits until ${until} (${key}).`];
  if (kind === 'approval')
    return [`Waits for approval ${sanitizeText(id)}. Answer with one of:`, ...answerCommands(sanitizeText(id))];
  if (kind === 'signal')
    return [`Waits for the signal "${sanitizeText(name ?? '')}" (${key}).`, ...signalCommand(key, name)];
  return [
    `It is unknown whether "${sanitizeText(name ?? '')}" happened (${key}). Find out, then resolve it:`,
    `  rondo resolve ${key} --retry           it did not happen: perform it`,
    `  rondo resolve ${key} --result JSON     it happened with this result`,
    `  rondo resolve ${key} --fail            record it as failed`,
  ];
}

/** Returns the command that sends a signal to the turn of a wait; none if its name is reserved. */
function signalCommand(key: string, name = ''): readonly string[] {
  if (signalNameProblem(name) !== undefined) return [];
  const shown = sanitizeText(name);
  const quoted = /^[\w.:@-]+$/.test(shown) ? shown : `'${shown.replaceAll("'", "'\\''")}'`;
  return [`  rondo signal ${key.split('/', 1)[0]} ${quoted} --payload JSON`];
}

/** The step that failed, as far as the error of a turn tells. */
interface FailedStep {
  readonly step?: string;
  readonly stepIndex?: number;
  readonly loopId?: string;
  readonly callId?: string;
}

function failedStepLines(details: unknown): readonly string[] {
  const { failedStep } = (details ?? {}) as { failedStep?: FailedStep };
  if (failedStep === undefined) return [];
  // A step of a plan has a name, a step of a composite an index. A step whose input cannot be built makes no call.
  const { stepIndex, step = stepIndex, loopId, callId } = failedStep;
  const parts = [
    step === undefined ? '' : `step ${sanitizeText(String(step))}`,
    loopId === undefined ? '' : `(${sanitizeText(loopId)})`,
  ];
  const place = parts.filter((part) => part !== '').join(' ');
  return [`Where: ${place}${callId === undefined ? '' : `, call ${sanitizeText(callId)}`}`];
}

function adviceLines({ loopId, turnId, trace }: TurnResult, code: string): readonly string[] {
  if (code === 'LOOP_NOT_FOUND' && trace.length === 0) return ['Next: rondo list'];
  if (code === 'DEFINITION_INVALID' && trace.length === 0) return ['Next: rondo check'];
  if (code === 'INPUT_VALIDATION_FAILED') return [`Next: rondo show ${sanitizeText(loopId)}`];
  if (code === 'KEY_CONFLICT') return ['Next: use another --key, or the same input and --as as before.'];
  if (code === 'REPLAY_MISMATCH') return ['The turn is unchanged. For all turns that changed code stops: rondo check'];
  return trace.length === 0 ? [] : [`Next: rondo trace ${sanitizeText(turnId)}`];
}
