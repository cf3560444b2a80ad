/** `rondo approve` and `rondo deny`: answer an approval, then resume its turn. */
import type { Host } from '../../../host/host.js';
import type { Approval, ApprovalAnswer } from '../../../protocol/approval.js';
import type { Json } from '../../../protocol/json.js';
import { loadSettings } from '../../compose.js';
import { UsageError } from '../../settings.js';
import { readJsonInput } from '../input.js';
import { openHostForRunning } from '../open-host.js';
import { loopPathOf } from '../render-approval.js';
import { resumeTurn } from '../resume-turn.js';
import { sanitizeText } from '../terminal-text.js';
import { userNameOf } from '../user-name.js';
import { exitCodes, type Invocation, textOption, type VerbHandler } from '../verb.js';

/** Handles `rondo approve`. */
export const approve: VerbHandler = async (invocation) => {
  const { options, terminal } = invocation;
  const when = textOption(options.when);
  const standing = when === undefined ? {} : { standing: (await readJsonInput('--when', when, terminal)) as Json };
  return answerApproval(invocation, { approved: true, ...standing });
};

/** Handles `rondo deny`. */
export const deny: VerbHandler = (invocation) => {
  const reason = textOption(invocation.options.reason);
  return answerApproval(invocation, { approved: false, ...(reason !== undefined && { reason }) });
};

type AnswerContent = Pick<ApprovalAnswer, 'approved' | 'reason' | 'standing'>;

async function answerApproval(
  { args, options, settingsInput, terminal, json }: Invocation,
  content: AnswerContent,
): Promise<number> {
  const by = userNameOf(options);
  const settings = await loadSettings(settingsInput);
  const { host, close } = await openHostForRunning(settings, terminal);
  try {
    const target = await findApproval(host, String(args[0]));
    const answer: ApprovalAnswer = { ...target, ...content, by };
    const approval = await host.answer(answer);
    const { approved } = content;
    terminal.printToStderr(
      `${approved ? 'Approved' : 'Denied'}: ${sanitizeText(loopPathOf(approval))} (${sanitizeText(approval.id)}).`,
    );
    const outcome = await resumeTurn(approval.turnId, { host, settings, terminal }, 'Your answer is recorded.');
    if (json) await terminal.printJson({ approval, approved, ...outcome });
    return exitCodes.ok;
  } finally {
    await close();
  }
}

const MIN_PREFIX_CHARS = 4;
const MAX_LISTED_IDS = 5;

/** Returns the id of the only approval, answered or not, that a reference matches; undefined if there are others or none. */
async function earlierApprovalId(host: Host, reference: string): Promise<string | undefined> {
  if (reference.length < MIN_PREFIX_CHARS) return undefined;
  const ids = (await host.archive.approvalIds()).filter((id) => matchesId(reference, id));
  return ids.length === 1 ? ids[0] : undefined;
}

/**
 * Finds a pending approval by its id, by a prefix of it, or by a prefix of the part after the last colon. A reference
 * to an answered approval, or without a match, is passed to the host: it refuses it with a reason, and records the attempt. Throws a
 * UsageError if several approvals match.
 */
async function findApproval(
  host: Host,
  reference: string,
): Promise<Pick<ApprovalAnswer, 'id' | 'callId' | 'argumentsDigest'>> {
  const matches = matchApprovals(await host.archive.approvals(), reference);
  const [only] = matches;
  if (only === undefined) return { id: (await earlierApprovalId(host, reference)) ?? reference };
  if (matches.length > 1) {
    const ids = matches.slice(0, MAX_LISTED_IDS).map(({ id }) => id);
    const more = matches.length > MAX_LISTED_IDS ? `, and ${matches.length - MAX_LISTED_IDS} more` : '';
    throw new UsageError(`"${reference}" matches ${matches.length} approvals: ${ids.join(', ')}${more}.`);
  }
  const { id, callId, argumentsDigest } = only;
  return { id, callId, argumentsDigest };
}

/**
 * Returns the approvals with this id, or those whose id or part after its last colon begins with it (from 4
 * characters).
 */
export function matchApprovals(pending: readonly Approval[], reference: string): readonly Approval[] {
  const exact = pending.filter(({ id }) => id === reference);
  if (exact.length > 0 || reference.length < MIN_PREFIX_CHARS) return exact;
  return pending.filter(({ id }) => matchesId(reference, id));
}

function matchesId(reference: string, id: string): boolean {
  const colon = id.lastIndexOf(':');
  return id.startsWith(reference) || id.startsWith(reference, colon) || id.startsWith(reference, colon + 1);
}
