/** `approve` and `deny`: answer an approval, then go on with its turn. */

import { LoopError } from '../../../base/errors.js';
import type { Host } from '../../../host/host.js';
import type { Approval, ApprovalAnswer } from '../../../protocol/approval.js';
import type { Json } from '../../../protocol/json.js';
import type { TurnResult } from '../../../protocol/trace.js';
import { loadSettings, type ProjectSettings } from '../../compose.js';
import { UsageError } from '../../settings.js';
import { readJsonInput } from '../input.js';
import { runWithLiveOutput } from '../live-run.js';
import { openHostForRunning } from '../open-host.js';
import { outcomeLines, summaryLineOf } from '../outcome.js';
import { pricingOf } from '../pricing.js';
import { loopPathOf } from '../render-approval.js';
import type { Terminal } from '../terminal.js';
import { sanitizeText } from '../terminal-text.js';
import { userNameOf } from '../user-name.js';
import { exitCodes, type Invocation, textOption, type VerbHandler } from '../verb.js';

export const approve: VerbHandler = async (invocation) => {
  const { options, terminal } = invocation;
  const when = textOption(options.when);
  const standing = when === undefined ? {} : { standing: (await readJsonInput('--when', when, terminal)) as Json };
  return answerApproval(invocation, { approved: true, ...standing });
};

export const deny: VerbHandler = (invocation) => {
  const reason = textOption(invocation.options.reason);
  return answerApproval(invocation, { approved: false, ...(reason !== undefined && { reason }) });
};

type AnswerContent = Pick<ApprovalAnswer, 'approved' | 'reason' | 'standing'>;

async function answerApproval(
  { args, options, settingsInput, terminal, json }: Invocation,
  word: AnswerContent,
): Promise<number> {
  const by = userNameOf(options);
  const settings = await loadSettings(settingsInput);
  const { host, close } = await openHostForRunning(settings, terminal);
  try {
    const meant = await findApproval(host, String(args[0]));
    const answer: ApprovalAnswer = { ...meant, ...word, by };
    const approval = await host.answer(answer);
    const { approved } = word;
    terminal.printToStderr(
      `${approved ? 'Approved' : 'Denied'}: ${sanitizeText(loopPathOf(approval))} (${sanitizeText(approval.id)}).`,
    );
    const went = await resumeTurn(host, approval, settings, terminal);
    if (json) await terminal.printJson({ approval, approved, ...went });
    return exitCodes.ok;
  } finally {
    await close();
  }
}

/** Goes on with the turn. The answer was taken, whatever comes of it. */
async function resumeTurn(
  host: Host,
  { turnId }: Approval,
  settings: ProjectSettings,
  terminal: Terminal,
): Promise<{ readonly turn: TurnResult } | { readonly error: { readonly code: string; readonly message: string } }> {
  try {
    const driving = { host, terminal, price: pricingOf(settings.config), watch: false };
    const turn = await runWithLiveOutput(driving, (heard) => host.resume(turnId, heard));
    for (const line of outcomeLines(turn)) terminal.printToStderr(line);
    terminal.printToStderr(summaryLineOf(turn));
    return { turn };
  } catch (thrown) {
    if (!(thrown instanceof LoopError)) throw thrown;
    const { code, message } = thrown;
    terminal.printToStderr(`The turn cannot go on. ${code}: ${sanitizeText(message)}`);
    terminal.printToStderr(`Your answer stands. Once that is mended: rondo resume ${turnId}`);
    return { error: { code, message } };
  }
}

const MIN_PREFIX_CHARS = 4;
const MAX_LISTED_IDS = 5;

/**
 * The approval that is meant: by its id, a beginning of it, or a beginning of its last part, with the colon or without. What nobody
 * waits for is handed on as it is: the host says why it cannot be answered, and keeps that somebody tried.
 */
async function findApproval(
  host: Host,
  given: string,
): Promise<Pick<ApprovalAnswer, 'id' | 'callId' | 'argumentsDigest'>> {
  const meant = matchApprovals(await host.archive.approvals(), given);
  const [only] = meant;
  if (only === undefined) return { id: given };
  if (meant.length > 1) {
    const ids = meant.slice(0, MAX_LISTED_IDS).map(({ id }) => id);
    const more = meant.length > MAX_LISTED_IDS ? `, and ${meant.length - MAX_LISTED_IDS} more` : '';
    throw new UsageError(`"${given}" could be any of ${meant.length} approvals: ${ids.join(', ')}${more}.`);
  }
  const { id, callId, argumentsDigest } = only;
  return { id, callId, argumentsDigest };
}

/** The approvals that an id, or a part of one, can mean. */
export function matchApprovals(all: readonly Approval[], given: string): readonly Approval[] {
  const exact = all.filter(({ id }) => id === given);
  return exact.length > 0 || given.length < MIN_PREFIX_CHARS ? exact : all.filter(({ id }) => matchesId(given, id));
}

function matchesId(given: string, id: string): boolean {
  const colon = id.lastIndexOf(':');
  return id.startsWith(given) || id.startsWith(given, colon) || id.startsWith(given, colon + 1);
}
