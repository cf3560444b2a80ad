/**
 * The gate before everything else. What is blocked is refused; what is asked about waits for a person, for as long as it
 * takes and whatever becomes of the process. The approval is bound to this very call, and held against it once more
 * before anything runs.
 */

import { LoopError } from '../base/errors.js';
import { shown } from '../base/excerpt.js';
import { coversTarget, targetDifference } from '../base/target.js';
import type { Clock } from '../journal/clock.js';
import { digest } from '../journal/record.js';
import { canonical } from '../json/canonical.js';
import { copy } from '../json/value.js';
import type { Layer } from '../kernel/layer.js';
import type { ApprovalTarget } from '../protocol/approval.js';
import type { Effect, Scope } from '../protocol/body.js';
import type { Json } from '../protocol/json.js';
import type { ApprovalPolicy } from '../protocol/loop.js';

/** What holds for an effect at its place, of its own definition and of all who watch over it. */
export interface Rule {
  readonly policy: ApprovalPolicy;
  /** The mode of each rule that asks: of every agent whose rule it is, and of the tool itself. @default without one */
  readonly modes?: readonly (string | undefined)[] | undefined;
  /** When it must be done, whatever its own policy allows: by the monotonic clock of the process. */
  readonly deadline?: number | undefined;
  /** How long a tool may take, and to find words for the person who is asked, in milliseconds. */
  readonly limitMs?: number | undefined;
}

/** Who answers for a turn: part of what an approval is bound to. */
export interface Authority {
  readonly principal?: string;
  readonly approvers?: readonly string[];
  readonly expiresAt: number;
}

/** What the layer asks of those who hold approvals. */
export interface Gate {
  rule(effect: Effect, key: string): Rule | undefined;
  authority(key: string): Authority;
  /** The standing grants whose predicate holds for a call. */
  granted(tool: string, definition: string, input: Json, key: string): readonly Grant[] | undefined;
}

/** A standing grant: the approval that it was given with, and what that call acted on. */
export interface Grant {
  readonly approval: string;
  readonly target?: ApprovalTarget | undefined;
}

/** What was asked, as it is journaled. */
interface Request extends Authority {
  readonly id: string;
  readonly tool: string;
  readonly argumentsDigest: string;
  readonly definition: string;
  readonly target?: ApprovalTarget;
  readonly description: string;
}

/** What was answered, as the host lets it in. */
interface Answer {
  readonly approved: boolean;
  readonly by: string;
  readonly at: number;
  readonly reason?: string;
  /** Nobody answered in time. */
  readonly expired?: boolean;
}

type Verdict =
  | { readonly verdict: 'ask'; readonly description: string; readonly target?: ApprovalTarget }
  | { readonly verdict: 'waived' }
  | { readonly verdict: 'granted'; readonly grant: string; readonly target?: ApprovalTarget };

/** What asking takes: those who hold approvals, and the time. */
export interface Asking {
  readonly gate: Gate;
  readonly clock: Clock;
}

interface Wording {
  readonly clock: Clock;
  readonly name: string;
  readonly limitMs: number;
}

/** How long a tool may look for words unless told, in milliseconds. */
const WORDING = 60_000;

/** The words, unless they take too long: a tool that does not find any is not asked about for ever. */
async function worded(words: unknown, { clock, name, limitMs }: Wording): Promise<unknown> {
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

export const REQUESTED = 'rondo.approval.requested';
const LONGEST = 8000;

/** Refuses an effect, or asks before it is performed. */
export function approvalLayer(rule: Rule, asking: Asking): Layer {
  const { gate } = asking;
  return async (effect: Effect, scope, next) => {
    // Whatever is no policy at all does not let anything pass.
    // guard: unknown-policy-blocks
    if (rule.policy !== 'ask') throw blocked(effect.name);
    const judged = await judge(effect, scope, rule, asking);
    if (judged.verdict === 'waived') return next();
    if (judged.verdict === 'granted') return next(boundTo(effect, judged.target));
    const request = (await scope.record(
      REQUESTED,
      () => requestOf(effect, scope.key, judged, gate) as never,
    )) as Request;
    const answer = (await scope.wait(`approval ${request.id}`)) as unknown;
    assertHolds(effect, request, answer as Answer);
    return next(/* guard: approved-target-handed-on */ boundTo(effect, request.target));
  };
}

/** The effect, performed only on the target that was approved. What is looked up then is not part of a replay. */
function boundTo(effect: Effect, target: ApprovalTarget | undefined): Effect {
  const binding = effect.binding?.();
  return binding === undefined ? effect : { ...effect, perform: binding.perform(target) };
}

/** Whether a person need be asked, and with which words: found out once and recorded. */
async function judge(effect: Effect, scope: Scope, rule: Rule, { gate, clock }: Asking): Promise<Verdict> {
  const { name } = effect;
  const input = effect.input as Json;
  const words = { clock, name, limitMs: rule.limitMs ?? WORDING };
  const perform = async (): Promise<Verdict> => {
    const grants = gate.granted(name, definitionOf(effect), input, scope.key) ?? [];
    const target = grants.length > 0 ? await resolved(effect, words) : undefined;
    const grant = grants.find((given) => /* guard: grant-covers-target */ coversTarget(given.target, target));
    if (grant !== undefined) return { verdict: 'granted', grant: grant.approval, ...withTarget(target) };
    return question(effect, rule.modes?.length ? rule.modes : [undefined], words);
  };
  return scope.effect({ kind: 'gate', name, input: null, safety: 'pure', perform });
}

/** Asks if any of the rules that ask wants to, each evaluated with its own mode. */
async function question(effect: Effect, modes: readonly (string | undefined)[], words: Wording): Promise<Verdict> {
  const first = await described(effect, modes, words);
  if (first === undefined) return { verdict: 'waived' };
  const target = await resolved(effect, words);
  if (target === undefined) return { verdict: 'ask', description: first };
  // Described once more between two looks at the target: what a person reads is what the approval is bound to.
  const description = (await described(effect, modes, words)) ?? first;
  const difference = targetDifference(target, await resolved(effect, words));
  if (difference === undefined) return { verdict: 'ask', description, target };
  throw notAdmitted(effect.name, `${difference}, while its approval was requested`);
}

/** What a person reads: the texts for all modes, or undefined if nobody need be asked in any of them. */
async function described(
  effect: Effect,
  modes: readonly (string | undefined)[],
  words: Wording,
): Promise<string | undefined> {
  const { name, describe } = effect;
  const input = effect.input as Json;
  const texts = new Set<string>();
  for (const mode of new Set(modes)) {
    // Made of a copy: what is asked about is what runs, whoever changes what it was shown.
    const told = await worded(
      describe?.(/* guard: description-gets-a-copy */ copy(input) as Json, mode === undefined ? {} : { mode }),
      words,
    );
    if (told !== null) texts.add(typeof told === 'string' && told.trim() !== '' ? told : `Run ${name}?`);
  }
  return texts.size === 0 ? undefined : shown([...texts].join('\n'), LONGEST);
}

async function resolved(effect: Effect, words: Wording): Promise<ApprovalTarget | undefined> {
  const found = effect.binding?.()?.resolve(copy(effect.input as Json) as Json);
  return found === undefined ? undefined : ((await worded(found, words)) as ApprovalTarget | undefined);
}

function withTarget(target: ApprovalTarget | undefined): { readonly target?: ApprovalTarget } {
  return target === undefined ? {} : { target };
}

/** The id is made of everything that the approval is bound to: with any of it changed it is another approval. */
function requestOf(
  effect: Effect,
  key: string,
  { description, target }: { readonly description: string; readonly target?: ApprovalTarget },
  gate: Gate,
): Request {
  const authority = gate.authority(key);
  const bound = {
    tool: effect.name,
    argumentsDigest: argumentsOf(effect),
    definition: definitionOf(effect),
    ...withTarget(target),
    ...authority,
  };
  const [turn = ''] = key.split('/', 1);
  // Letters and digits only: a person has to type it.
  const name = digest(canonical({ key, ...bound } as unknown as Json)).replace(/[^A-Za-z0-9]/g, '');
  const id = `${turn}:${name.slice(0, 16)}`;
  return { id, ...bound, description };
}

function argumentsOf({ input }: Effect): string {
  return digest(canonical(input as Json));
}

function definitionOf({ definition = '' }: Effect): string {
  return digest(definition);
}

/** The last look before the tool runs: that it was approved, in time, and that it is still what was approved. */
function assertHolds(effect: Effect, request: Request, answer: Answer): void {
  const { name } = effect;
  const { approved, by, reason, at, expired } = answer ?? {};
  // guard: denied-call-refused
  if (approved !== true) {
    // Bounded: the journal drops the data of an error that is too large, and with it that a person said no.
    const [who, why] = [shown(String(by), 200), reason === undefined ? undefined : shown(String(reason), 1000)];
    const data = { name, rejected: expired !== true, by: who, ...(why !== undefined && { reason: why }) };
    throw new LoopError(
      'APPROVAL_DENIED',
      `${who} did not approve "${name}"${why === undefined ? '' : `: ${why}`}.`,
      data,
    );
  }
  const changed =
    // guard: approval-bound-to-arguments
    request.argumentsDigest !== argumentsOf(effect)
      ? 'its arguments'
      : /* guard: approval-bound-to-definition */ request.definition !== definitionOf(effect)
        ? 'its definition'
        : undefined;
  if (changed !== undefined) throw notAdmitted(name, `${changed} changed after it was approved`);
  // guard: late-approval-refused
  if (!(at <= request.expiresAt)) throw notAdmitted(name, 'the approval came too late');
}

function blocked(name: string): LoopError {
  return new LoopError('TOOL_NOT_ADMITTED', `The policy of "${name}" blocks it.`, { name });
}

function notAdmitted(name: string, why: string): LoopError {
  return new LoopError('TOOL_NOT_ADMITTED', `"${name}" did not run: ${why}. Ask again.`, { name });
}
