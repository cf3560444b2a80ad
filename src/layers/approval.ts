/**
 * The approval layer, inside of the input filters and the admission and outside of all other layers. It refuses blocked
 * effects and makes effects with the policy `ask` wait for a person, across restarts. An approval is bound to one call: its
 * arguments, definition, build and target are compared again before the effect runs. It is requested again if the definition
 * or the build has changed, and for each retry of the turn after the call had failed.
 */

import { targetDifference } from '../base/approval-target.js';
import { LoopError } from '../base/errors.js';
import { escapeForDisplay } from '../base/escape-text.js';
import type { Clock } from '../journal/clock.js';
import { runtimeEffect } from '../journal/runtime-effects.js';
import { cloneJson } from '../json/value.js';
import {
  APPROVAL_REQUESTED,
  type ApprovalAnswerPayload,
  type ApprovalAuthority,
  type ApprovalRequest,
  type ApprovedCode,
  approvalRequestOf,
  assertApproved,
  blockedError,
  codeChangeSince,
  definitionDigestOf,
  fallbackOf,
  isRequestedAgain,
  notAdmittedError,
  outdatedApprovalError,
  usedApprovalError,
  withTarget,
} from '../policy/approval-request.js';
import type { ApprovalRule } from '../policy/approval-rule.js';
import { coversTarget } from '../policy/standing-grant.js';
import type { ApprovalTarget } from '../protocol/approval.js';
import type { Effect } from '../protocol/body.js';
import type { Json } from '../protocol/json.js';
import type { Layer, LayerScope } from '../protocol/session.js';

/**
 * The host's side of the approval layer: which rule applies to an effect, who may approve it, and which grants exist.
 */
export interface ApprovalGate {
  /** The build of the host that approvals are bound to. */
  readonly build?: string | undefined;
  /** Returns the rule for the effect at `key`, or undefined if neither a policy nor a restriction applies to it. */
  ruleFor(effect: Effect, key: string): ApprovalRule | undefined;
  /** Returns the check whether the grant of the turn permits an effect; undefined if the turn has no grant. */
  admissionAt(key: string): ((effect: Effect) => void) | undefined;
  /** Returns who may approve the call at `key`, and until when. */
  authorityFor(key: string): ApprovalAuthority;
  /** Returns the standing grants that cover the call, apart from its target. */
  grantsFor(effect: Effect, key: string): readonly StandingGrantRef[] | undefined;
}

/** A standing grant: the id of the approval whose answer gave it, and the target of the call that was approved. */
export interface StandingGrantRef {
  readonly approvalId: string;
  readonly target?: ApprovalTarget | undefined;
}

/** Whether a call may run: after a person approves it, without approval, or by a standing grant. */
type ApprovalVerdict =
  | { readonly verdict: 'ask'; readonly description: string; readonly target?: ApprovalTarget }
  | { readonly verdict: 'waived' }
  | ({ readonly verdict: 'granted'; readonly grant: string; readonly target?: ApprovalTarget } & Partial<ApprovedCode>);

/** A call that may run: the target and the code that were approved. `code` is undefined for records of earlier versions. */
interface Admission {
  readonly target: ApprovalTarget | undefined;
  readonly code: ApprovedCode | undefined;
  /** What has changed in the authority of the turn, so that the admission does not hold any more. */
  readonly authorityChange?: string | undefined;
  /** True if the tool required no approval, so that the call is bound to nothing. */
  readonly isWaived?: boolean;
}

/** Dependencies of the approval layer. */
interface ApprovalDeps {
  readonly gate: ApprovalGate;
  readonly clock: Clock;
}

/** The time limit for a tool to describe a call or to resolve its target, and the name of the tool. */
interface ToolReplyTimeout {
  readonly clock: Clock;
  readonly name: string;
  readonly limitMs: number;
}

const DEFAULT_TOOL_REPLY_TIMEOUT_MS = 60_000;

/**
 * Returns the reply of a tool, awaited if it is a promise. Throws TIMEOUT after `limitMs`, so that a hanging tool
 * cannot block the turn forever.
 */
async function awaitToolReply(reply: unknown, { clock, name, limitMs }: ToolReplyTimeout): Promise<unknown> {
  if (typeof (reply as Partial<PromiseLike<unknown>> | null | undefined)?.then !== 'function') return reply;
  const done = new AbortController();
  const late = clock.sleep(limitMs, done.signal).then(() => {
    throw new LoopError('TIMEOUT', `"${name}" did not describe its approval within ${limitMs} ms.`, { name });
  });
  try {
    return await Promise.race([reply, late]);
  } finally {
    late.catch(() => {});
    done.abort();
  }
}

const MAX_DESCRIPTION_CHARS = 8000;
/** How often the approval of one call is evaluated. */
const MAX_REQUESTS = 1000;

/**
 * Returns the layer of a rule. It refuses the effect unless the policy is `ask`. Under `ask`, the effect runs if a
 * person approves it, if a standing grant covers it, or if the tool requires no approval for this input.
 */
export function approvalLayer(rule: ApprovalRule, deps: ApprovalDeps): Layer {
  return async (effect: Effect, scope, next) => {
    // Fail closed: an unknown policy value blocks the effect.
    // guard: unknown-policy-blocks
    if (rule.policy !== 'ask') throw blockedError(effect.name);
    const current = currentCode(effect, deps.gate);
    for (let earlierRequests = 0; earlierRequests < MAX_REQUESTS; earlierRequests++) {
      const admission = await admit(effect, scope, rule, deps, earlierRequests);
      const { code = current, target, authorityChange, isWaived } = admission;
      const change = authorityChange ?? codeChangeSince(code, current);
      if (isEvaluatedAgain(scope, change)) continue;
      if (isWaived === true && change === undefined) return next();
      const admitted = change === undefined ? bindToTarget(effect, target) : refusing(effect, change);
      try {
        return await next(/* guard: approved-target-handed-on */ approvedOnce(admitted));
      } catch (thrown) {
        if (!isRequestedAgain(thrown)) throw thrown;
      }
    }
    throw notAdmittedError(effect.name, `its code or the authority of its turn changed ${MAX_REQUESTS} times`);
  };
}

/** Returns the effect so that a retry of the turn, which makes another attempt after the call had ended, asks again. */
function approvedOnce(effect: Effect): Effect {
  const admitRetry = (): never => {
    throw usedApprovalError(effect.name);
  };
  return { ...effect, /* guard: retry-asks-again */ admitRetry };
}

/** Returns the code that the call would run now. */
function currentCode(effect: Effect, { build }: ApprovalGate): ApprovedCode {
  const definition = definitionDigestOf(effect);
  return build === undefined ? { definition } : { definition, build };
}

/**
 * True if the approval of a call is evaluated again: because it was, in the record, or because the code or the authority
 * has changed and the effect has not started.
 */
function isEvaluatedAgain({ nextRecordedEntry }: LayerScope, change: string | undefined): boolean {
  return nextRecordedEntry === undefined ? change !== undefined : nextRecordedEntry.kind === 'gate';
}

/** Returns the effect with attempts that fail, because its code or authority has changed since it started. */
function refusing(effect: Effect, change: string): Effect {
  const perform = (): never => {
    throw outdatedApprovalError(effect.name, change);
  };
  return { ...effect, perform };
}

/** Waits until the call may run. Throws if it is denied, or if the answer came too late. */
async function admit(
  effect: Effect,
  scope: LayerScope,
  rule: ApprovalRule,
  deps: ApprovalDeps,
  earlierRequests: number,
): Promise<Admission> {
  const { gate } = deps;
  const verdict = await evaluateApproval(effect, scope, rule, deps);
  if (verdict.verdict === 'waived') {
    // guard: waiver-without-review-only
    const authorityChange = rule.isReviewed === true ? 'the review that its grant demands' : undefined;
    return { target: undefined, code: undefined, isWaived: true, authorityChange };
  }
  if (verdict.verdict === 'granted') {
    const { definition, build } = verdict;
    const code = definition === undefined ? undefined : { definition, ...(build !== undefined && { build }) };
    const isStillGranted = gate.grantsFor(effect, scope.key)?.some(({ approvalId }) => approvalId === verdict.grant);
    // guard: standing-grant-applies-to-regranted-turn
    const authorityChange = rule.isReviewed === true && isStillGranted !== true ? CHANGED_APPROVERS : undefined;
    return { target: verdict.target, code, authorityChange };
  }
  const details = { ...verdict, build: gate.build, earlierRequests };
  const request = (await scope.record(
    APPROVAL_REQUESTED,
    () => approvalRequestOf(effect, scope.key, details, gate.authorityFor(scope.key)) as never,
  )) as ApprovalRequest;
  const answer = (await scope.wait(`approval ${request.id}`)) as unknown as ApprovalAnswerPayload;
  assertApproved(effect, request, answer);
  // guard: answerer-is-approver-of-regranted-turn
  const isApprover = gate.authorityFor(scope.key).approvers?.includes(answer.by) !== false;
  return { target: request.target, code: request, authorityChange: isApprover ? undefined : CHANGED_APPROVERS };
}

const CHANGED_APPROVERS = 'who may approve it';

/**
 * Returns the effect restricted to the approved target; unchanged if the tool resolves no target. The target is
 * resolved on each attempt, outside of replay.
 */
function bindToTarget(effect: Effect, target: ApprovalTarget | undefined): Effect {
  const binding = effect.binding?.();
  return binding === undefined ? effect : { ...effect, perform: binding.perform(target) };
}

/**
 * Decides whether a person must approve the call, and what the request says. The verdict is computed once and recorded.
 */
async function evaluateApproval(
  effect: Effect,
  scope: LayerScope,
  rule: ApprovalRule,
  { gate, clock }: ApprovalDeps,
): Promise<ApprovalVerdict> {
  const { name } = effect;
  const timeout = { clock, name, limitMs: rule.toolTimeoutMs ?? DEFAULT_TOOL_REPLY_TIMEOUT_MS };
  const perform = async (): Promise<ApprovalVerdict> => {
    const grants = gate.grantsFor(effect, scope.key) ?? [];
    const target = grants.length > 0 ? await resolveTarget(effect, timeout) : undefined;
    const grant = grants.find((candidate) => /* guard: grant-covers-target */ coversTarget(candidate.target, target));
    if (grant !== undefined)
      return { verdict: 'granted', grant: grant.approvalId, ...withTarget(target), ...currentCode(effect, gate) };
    return askOrWaive(effect, rule, timeout);
  };
  return scope.effect(runtimeEffect({ kind: 'gate', name, input: null, safety: 'pure', perform }));
}

/**
 * Returns the verdict `ask` if the tool requires approval in any of the modes or a grant demands it, and `waived`
 * otherwise. Throws if the target changes meanwhile.
 */
async function askOrWaive(effect: Effect, rule: ApprovalRule, timeout: ToolReplyTimeout): Promise<ApprovalVerdict> {
  const modes = rule.modes?.length ? rule.modes : [undefined];
  const first = (await describeForModes(effect, modes, timeout)) ?? (await describeReview(effect, rule, timeout));
  if (first === undefined) return { verdict: 'waived' };
  const target = await resolveTarget(effect, timeout);
  if (target === undefined) return { verdict: 'ask', description: first };
  // The description is made between two resolutions of the target, so it describes the target that the approval is
  // bound to.
  const description = (await describeForModes(effect, modes, timeout)) ?? first;
  const difference = targetDifference(target, await resolveTarget(effect, timeout));
  if (difference === undefined) return { verdict: 'ask', description, target };
  throw notAdmittedError(effect.name, `${difference}, while its approval was requested`);
}

/** Returns what the approver of a call reads that no mode asks for; undefined unless a grant demands its review. */
async function describeReview(
  effect: Effect,
  { isReviewed }: ApprovalRule,
  timeout: ToolReplyTimeout,
): Promise<string | undefined> {
  // guard: reviewed-call-always-asked
  if (isReviewed !== true) return undefined;
  return (await describeForModes(effect, [undefined], timeout)) ?? `Run ${effect.name}?`;
}

/** Returns the text that the approver reads, over all modes; undefined if no mode requires approval. */
async function describeForModes(
  effect: Effect,
  modes: readonly (string | undefined)[],
  timeout: ToolReplyTimeout,
): Promise<string | undefined> {
  const { name, describe } = effect;
  const input = effect.input as Json;
  const texts = new Set<string>();
  for (const mode of new Set(modes)) {
    // The tool gets a copy: it must not change the arguments that are approved and performed.
    const description = await awaitToolReply(
      describe?.(/* guard: description-gets-a-copy */ cloneJson(input) as Json, mode === undefined ? {} : { mode }),
      timeout,
    );
    if (description === null) continue;
    texts.add(typeof description === 'string' && description.trim() !== '' ? description : `Run ${name}?`);
  }
  if (texts.size === 0) return undefined;
  const models = fallbackOf(effect).map(({ id, model }) => (model === undefined ? id : `${id}:${model}`));
  if (models.length > 0) texts.add(`If the model fails, these get the same request: ${models.join(', ')}.`);
  return escapeForDisplay([...texts].join('\n'), MAX_DESCRIPTION_CHARS);
}

/** Returns the current target of the call; undefined if the tool resolves none. */
async function resolveTarget(effect: Effect, timeout: ToolReplyTimeout): Promise<ApprovalTarget | undefined> {
  const target = effect.binding?.()?.resolve(cloneJson(effect.input as Json) as Json);
  return target === undefined ? undefined : ((await awaitToolReply(target, timeout)) as ApprovalTarget | undefined);
}
