/** `approve` and `deny`: answer an approval, then go on with its turn. */

import { LoopError } from '../../../base/errors.js';
import type { Host } from '../../../host/host.js';
import type { Approval, ApprovalAnswer } from '../../../protocol/approval.js';
import type { Json } from '../../../protocol/json.js';
import type { TurnResult } from '../../../protocol/trace.js';
import { type ProjectSettings, settingsOf } from '../../compose.js';
import { UsageError } from '../../settings.js';
import { pathOf } from '../card.js';
import { drive } from '../drive.js';
import { hostToContinue } from '../host.js';
import { readInput } from '../input.js';
import { summaryOf, toldOf } from '../outcome.js';
import { plain } from '../paint.js';
import { priceOf } from '../price.js';
import type { Terminal } from '../terminal.js';
import { type Act, exit, type Invocation, textOf } from '../verb.js';
import { whoOf } from '../who.js';

export const approve: Act = async (invocation) => {
  const { options, terminal } = invocation;
  const when = textOf(options.when);
  const standing = when === undefined ? {} : { standing: (await readInput('--when', when, terminal)) as Json };
  return decide(invocation, { approved: true, ...standing });
};

export const deny: Act = (invocation) => {
  const reason = textOf(invocation.options.reason);
  return decide(invocation, { approved: false, ...(reason !== undefined && { reason }) });
};

type Word = Pick<ApprovalAnswer, 'approved' | 'reason' | 'standing'>;

async function decide({ args, options, asked, terminal, json }: Invocation, word: Word): Promise<number> {
  const by = whoOf(options);
  const settings = await settingsOf(asked);
  const { host, close } = await hostToContinue(settings, terminal);
  try {
    const meant = await find(host, String(args[0]));
    const answer: ApprovalAnswer = { ...meant, ...word, by };
    const approval = await host.answer(answer);
    const { approved } = word;
    terminal.say(`${approved ? 'Approved' : 'Denied'}: ${plain(pathOf(approval))} (${plain(approval.id)}).`);
    const went = await goOn(host, approval, settings, terminal);
    if (json) await terminal.json({ approval, approved, ...went });
    return exit.ok;
  } finally {
    await close();
  }
}

/** Goes on with the turn. The answer was taken, whatever comes of it. */
async function goOn(
  host: Host,
  { turnId }: Approval,
  settings: ProjectSettings,
  terminal: Terminal,
): Promise<{ readonly turn: TurnResult } | { readonly error: { readonly code: string; readonly message: string } }> {
  try {
    const driving = { host, terminal, price: priceOf(settings.config), watch: false };
    const turn = await drive(driving, (heard) => host.resume(turnId, heard));
    for (const line of toldOf(turn)) terminal.say(line);
    terminal.say(summaryOf(turn));
    return { turn };
  } catch (thrown) {
    if (!(thrown instanceof LoopError)) throw thrown;
    const { code, message } = thrown;
    terminal.say(`The turn cannot go on. ${code}: ${plain(message)}`);
    terminal.say(`Your answer stands. Once that is mended: rondo resume ${turnId}`);
    return { error: { code, message } };
  }
}

const SHORTEST = 4;
const SHOWN = 5;

/**
 * The approval that is meant: by its id, a beginning of it, or a beginning of its last part, with the colon or without. What nobody
 * waits for is handed on as it is: the host says why it cannot be answered, and keeps that somebody tried.
 */
async function find(host: Host, given: string): Promise<Pick<ApprovalAnswer, 'id' | 'callId' | 'argumentsDigest'>> {
  const meant = approvalsNamed(await host.archive.approvals(), given);
  const [only] = meant;
  if (only === undefined) return { id: given };
  if (meant.length > 1) {
    const ids = meant.slice(0, SHOWN).map(({ id }) => id);
    const more = meant.length > SHOWN ? `, and ${meant.length - SHOWN} more` : '';
    throw new UsageError(`"${given}" could be any of ${meant.length} approvals: ${ids.join(', ')}${more}.`);
  }
  const { id, callId, argumentsDigest } = only;
  return { id, callId, argumentsDigest };
}

/** The approvals that an id, or a part of one, can mean. */
export function approvalsNamed(all: readonly Approval[], given: string): readonly Approval[] {
  const exact = all.filter(({ id }) => id === given);
  return exact.length > 0 || given.length < SHORTEST ? exact : all.filter(({ id }) => isPart(given, id));
}

function isPart(given: string, id: string): boolean {
  const colon = id.lastIndexOf(':');
  return id.startsWith(given) || id.startsWith(given, colon) || id.startsWith(given, colon + 1);
}
