/**
 * The gate before everything else. What is blocked is refused; what is asked about waits for a person, for as long as it
 * takes and whatever becomes of the process. The approval is bound to this very call, and held against it once more
 * before anything runs.
 */

import { shown } from '../base/shown.js';
import { canonical } from '../journal/canonical.js';
import type { Clock } from '../journal/clock.js';
import { LoopError } from '../journal/errors.js';
import { digest } from '../journal/record.js';
import { copy } from '../journal/value.js';
import type { Effect } from '../kernel/effect.js';
import type { Layer } from '../kernel/layer.js';
import type { Scope } from '../kernel/scope.js';
import type { Json } from '../protocol/json.js';
import type { ApprovalPolicy } from '../protocol/loop.js';

/** An effect that can be asked about. */
export interface AskableEffect extends Effect {
  /** Tells two definitions of one id apart. */
  readonly definition?: string;
  /** What a person is asked, or null when nobody need be. */
  readonly describe?: ((input: Json, context: { readonly mode?: string }) => unknown) | undefined;
}

/** What holds for an effect at its place, of its own definition and of all who watch over it. */
export interface Rule {
  readonly policy: ApprovalPolicy;
  readonly mode?: string | undefined;
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
  rule(effect: AskableEffect, key: string): Rule | undefined;
  authority(key: string): Authority;
  /** The standing grant that covers a call, by its id. */
  granted(tool: string, definition: string, input: Json, key: string): string | undefined;
}

/** What was asked, as it is journaled. */
interface Request extends Authority {
  readonly id: string;
  readonly tool: string;
  readonly argumentsDigest: string;
  readonly definition: string;
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
  | { readonly verdict: 'ask'; readonly description: string }
  | { readonly verdict: 'waived' }
  | { readonly verdict: 'granted'; readonly grant: string };

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
  return async (effect: AskableEffect, scope, next) => {
    // Whatever is no policy at all does not let anything pass.
    if (rule.policy !== 'ask') throw blocked(effect.name);
    const judged = await judge(effect, scope, rule, asking);
    if (judged.verdict !== 'ask') return next();
    const request = await scope.record(
      REQUESTED,
      () => requestOf(effect, scope.key, judged.description, gate) as never,
    );
    const answer = (await scope.wait(`approval ${(request as Request).id}`)) as unknown;
    assertHolds(effect, request, answer as Answer);
    return next();
  };
}

/** Whether a person need be asked, and with which words: found out once and recorded. */
async function judge(
  effect: AskableEffect,
  scope: Scope,
  { mode, limitMs = WORDING }: Rule,
  { gate, clock }: Asking,
): Promise<Verdict> {
  const { name, describe } = effect;
  const input = effect.input as Json;
  const perform = async (): Promise<Verdict> => {
    const grant = gate.granted(name, definitionOf(effect), input, scope.key);
    if (grant !== undefined) return { verdict: 'granted', grant };
    // The words are made of a copy: what is asked about is what runs, whoever changes what it was shown.
    const told = await worded(describe?.(copy(input) as Json, mode === undefined ? {} : { mode }), {
      clock,
      name,
      limitMs,
    });
    if (told === null) return { verdict: 'waived' };
    const words = typeof told === 'string' && told.trim() !== '' ? told : `Run ${name}?`;
    return { verdict: 'ask', description: shown(words, LONGEST) };
  };
  return scope.effect({ kind: 'gate', name, input: null, safety: 'pure', perform });
}

/** The id is made of everything that the approval is bound to: with any of it changed it is another approval. */
function requestOf(effect: AskableEffect, key: string, description: string, gate: Gate): Request {
  const authority = gate.authority(key);
  const bound = {
    tool: effect.name,
    argumentsDigest: argumentsOf(effect),
    definition: definitionOf(effect),
    ...authority,
  };
  const [turn = ''] = key.split('/', 1);
  // Letters and digits only: a person has to type it.
  const name = digest(canonical({ key, ...bound })).replace(/[^A-Za-z0-9]/g, '');
  const id = `${turn}:${name.slice(0, 16)}`;
  return { id, ...bound, description };
}

function argumentsOf({ input }: Effect): string {
  return digest(canonical(input as Json));
}

function definitionOf({ definition = '' }: AskableEffect): string {
  return digest(definition);
}

/** The last look before the tool runs: that it was approved, in time, and that it is still what was approved. */
function assertHolds(effect: AskableEffect, request: Request, answer: Answer): void {
  const { name } = effect;
  const { approved, by, reason, at, expired } = answer ?? {};
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
    request.argumentsDigest !== argumentsOf(effect)
      ? 'its arguments'
      : request.definition !== definitionOf(effect)
        ? 'its definition'
        : undefined;
  if (changed !== undefined) throw notAdmitted(name, `${changed} changed after it was approved`);
  if (!(at <= request.expiresAt)) throw notAdmitted(name, 'the approval came too late');
}

function blocked(name: string): LoopError {
  return new LoopError('TOOL_NOT_ADMITTED', `The policy of "${name}" blocks it.`, { name });
}

function notAdmitted(name: string, why: string): LoopError {
  return new LoopError('TOOL_NOT_ADMITTED', `"${name}" did not run: ${why}. Ask again.`, { name });
}
