/**
 * The gate before everything else. What is blocked is refused; what is asked about waits for a person, for as long as it
 * takes and whatever becomes of the process. The approval is bound to this very call, and held against it once more
 * before anything runs.
 */

import { targetDifference } from '../base/approval-target.js';
import { LoopError } from '../base/errors.js';
import { escapeForDisplay } from '../base/escape-text.js';
import type { Clock } from '../journal/clock.js';
import { cloneJson } from '../json/value.js';
import {
  APPROVAL_REQUESTED,
  type ApprovalAnswerPayload,
  type ApprovalAuthority,
  type ApprovalRequest,
  approvalRequestOf,
  assertApproved,
  blockedError,
  definitionDigestOf,
  notAdmittedError,
  withTarget,
} from '../policy/approval-request.js';
import type { ApprovalRule } from '../policy/approval-rule.js';
import { coversTarget } from '../policy/standing-grant.js';
import type { ApprovalTarget } from '../protocol/approval.js';
import type { Effect, Scope } from '../protocol/body.js';
import type { Json } from '../protocol/json.js';
import type { Layer } from '../protocol/session.js';

/** What the layer asks of those who hold approvals. */
export interface ApprovalGate {
  ruleFor(effect: Effect, key: string): ApprovalRule | undefined;
  authorityFor(key: string): ApprovalAuthority;
  /** The standing grants whose predicate holds for a call. */
  grantsFor(tool: string, definition: string, input: Json, key: string): readonly StandingGrantRef[] | undefined;
}

/** A standing grant: the approval that it was given with, and what that call acted on. */
export interface StandingGrantRef {
  readonly approvalId: string;
  readonly target?: ApprovalTarget | undefined;
}

type ApprovalVerdict =
  | { readonly verdict: 'ask'; readonly description: string; readonly target?: ApprovalTarget }
  | { readonly verdict: 'waived' }
  | { readonly verdict: 'granted'; readonly grant: string; readonly target?: ApprovalTarget };

/** What asking takes: those who hold approvals, and the time. */
export interface ApprovalDeps {
  readonly gate: ApprovalGate;
  readonly clock: Clock;
}

interface ToolReplyDeadline {
  readonly clock: Clock;
  readonly name: string;
  readonly limitMs: number;
}

/** How long a tool may look for words unless told, in milliseconds. */
const DEFAULT_TOOL_REPLY_TIMEOUT_MS = 60_000;

/** The words, unless they take too long: a tool that does not find any is not asked about for ever. */
async function awaitToolReply(words: unknown, { clock, name, limitMs }: ToolReplyDeadline): Promise<unknown> {
  if (typeof (words as Partial<PromiseLike<unknown>> | null | undefined)?.then !== 'function') return words;
  const done = new AbortController();
  const late = clock.sleep(limitMs, done.signal).then(() => {
    throw new LoopError('TIMEOUT', `"${name}" did not say within ${limitMs} ms what a person should be asked.`, {
      name,
    });
  });
  try {
    return await Promise.race([words, late]);
  } finally {
    late.catch(() => {});
    done.abort();
  }
}

const MAX_DESCRIPTION_CHARS = 8000;

/** Refuses an effect, or asks before it is performed. */
export function approvalLayer(rule: ApprovalRule, asking: ApprovalDeps): Layer {
  const { gate } = asking;
  return async (effect: Effect, scope, next) => {
    // Whatever is no policy at all does not let anything pass.
    // guard: unknown-policy-blocks
    if (rule.policy !== 'ask') throw blockedError(effect.name);
    const judged = await evaluateApproval(effect, scope, rule, asking);
    if (judged.verdict === 'waived') return next();
    if (judged.verdict === 'granted') return next(bindToTarget(effect, judged.target));
    const request = (await scope.record(
      APPROVAL_REQUESTED,
      () => approvalRequestOf(effect, scope.key, judged, gate.authorityFor(scope.key)) as never,
    )) as ApprovalRequest;
    const answer = (await scope.wait(`approval ${request.id}`)) as unknown;
    assertApproved(effect, request, answer as ApprovalAnswerPayload);
    return next(/* guard: approved-target-handed-on */ bindToTarget(effect, request.target));
  };
}

/** The effect, performed only on the target that was approved. What is looked up then is not part of a replay. */
function bindToTarget(effect: Effect, target: ApprovalTarget | undefined): Effect {
  const binding = effect.binding?.();
  return binding === undefined ? effect : { ...effect, perform: binding.perform(target) };
}

/** Whether a person need be asked, and with which words: found out once and recorded. */
async function evaluateApproval(
  effect: Effect,
  scope: Scope,
  rule: ApprovalRule,
  { gate, clock }: ApprovalDeps,
): Promise<ApprovalVerdict> {
  const { name } = effect;
  const input = effect.input as Json;
  const words = { clock, name, limitMs: rule.toolTimeoutMs ?? DEFAULT_TOOL_REPLY_TIMEOUT_MS };
  const perform = async (): Promise<ApprovalVerdict> => {
    const grants = gate.grantsFor(name, definitionDigestOf(effect), input, scope.key) ?? [];
    const target = grants.length > 0 ? await resolveTarget(effect, words) : undefined;
    const grant = grants.find((given) => /* guard: grant-covers-target */ coversTarget(given.target, target));
    if (grant !== undefined) return { verdict: 'granted', grant: grant.approvalId, ...withTarget(target) };
    return askOrWaive(effect, rule.modes?.length ? rule.modes : [undefined], words);
  };
  return scope.effect({ kind: 'gate', name, input: null, safety: 'pure', perform });
}

/** Asks if any of the rules that ask wants to, each evaluated with its own mode. */
async function askOrWaive(
  effect: Effect,
  modes: readonly (string | undefined)[],
  words: ToolReplyDeadline,
): Promise<ApprovalVerdict> {
  const first = await describeForModes(effect, modes, words);
  if (first === undefined) return { verdict: 'waived' };
  const target = await resolveTarget(effect, words);
  if (target === undefined) return { verdict: 'ask', description: first };
  // Described once more between two looks at the target: what a person reads is what the approval is bound to.
  const description = (await describeForModes(effect, modes, words)) ?? first;
  const difference = targetDifference(target, await resolveTarget(effect, words));
  if (difference === undefined) return { verdict: 'ask', description, target };
  throw notAdmittedError(effect.name, `${difference}, while its approval was requested`);
}

/** What a person reads: the texts for all modes, or undefined if nobody need be asked in any of them. */
async function describeForModes(
  effect: Effect,
  modes: readonly (string | undefined)[],
  words: ToolReplyDeadline,
): Promise<string | undefined> {
  const { name, describe } = effect;
  const input = effect.input as Json;
  const texts = new Set<string>();
  for (const mode of new Set(modes)) {
    // Made of a copy: what is asked about is what runs, whoever changes what it was shown.
    const told = await awaitToolReply(
      describe?.(/* guard: description-gets-a-copy */ cloneJson(input) as Json, mode === undefined ? {} : { mode }),
      words,
    );
    if (told !== null) texts.add(typeof told === 'string' && told.trim() !== '' ? told : `Run ${name}?`);
  }
  return texts.size === 0 ? undefined : escapeForDisplay([...texts].join('\n'), MAX_DESCRIPTION_CHARS);
}

async function resolveTarget(effect: Effect, words: ToolReplyDeadline): Promise<ApprovalTarget | undefined> {
  const found = effect.binding?.()?.resolve(cloneJson(effect.input as Json) as Json);
  return found === undefined ? undefined : ((await awaitToolReply(found, words)) as ApprovalTarget | undefined);
}
