// Shared set-up of the approval tests: a tool that records its calls, seeded randomness, and the outcomes of answers.

import { seededRandom } from '../../src/adapters/system/seeded-ids.js';
import { LoopError } from '../../src/base/errors.js';
import type { Host } from '../../src/host/host.js';
import type { ToolFunction } from '../../src/loops/tool-implementation.js';
import type { Approval, ApprovalAnswer } from '../../src/protocol/approval.js';
import type { Entry } from '../../src/protocol/entry.js';
import type { EventEnvelope } from '../../src/protocol/events.js';
import type { Json } from '../../src/protocol/json.js';

/** The seed of the random tests; set RONDO_SEED to repeat a run. */
export const SEED = Number(process.env.RONDO_SEED ?? 1);
/** The session that records refused answers to unknown approvals. */
export const REFUSALS = 'rondo:refusals';
/** The members of a definition that requires an approval. */
export const ASK = { policy: { approval: 'ask' } } as const;

/** The arguments of every call of a tool, in order. */
export class RecordedActions {
  readonly performed: Json[] = [];

  /** A tool that records its arguments and returns them. */
  readonly act: ToolFunction = (input) => {
    this.performed.push(input);
    return input;
  };

  get count(): number {
    return this.performed.length;
  }
}

/** Waits for one iteration of the event loop. */
export const tick = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));

/** Waits for several iterations of the event loop. */
export async function ticks(count = 10): Promise<void> {
  for (let i = 0; i < count; i++) await tick();
}

/** Returns a promise that stays pending until `open` is called. */
export function gate(): { readonly passed: Promise<void>; open(): void } {
  let open = (): void => {};
  const passed = new Promise<void>((resolve) => {
    open = resolve;
  });
  return { passed, open: () => open() };
}

/** Returns the only pending approval; throws if there is none or more than one. */
export async function onlyPending(host: Host, session?: string): Promise<Approval> {
  const approvals = await host.archive.approvals(session);
  const [approval] = approvals;
  if (approval === undefined || approvals.length > 1)
    throw new Error(`Expected one pending approval, got ${approvals.length}.`);
  return approval;
}

/** Returns the approval ids on the envelopes, in the order of their requests. */
export function shownIds(envelopes: readonly EventEnvelope[]): readonly string[] {
  const ids = envelopes.flatMap(({ type, content }) => (type === 'tool-call' ? [content.approvalId ?? ''] : []));
  return [...new Set(ids)].filter((id) => id !== '');
}

/** Sends an answer. Returns 'accepted', the reason of its refusal, or a description of any other error. */
export async function answerOutcome(host: Host, answer: unknown): Promise<string> {
  try {
    await host.answer(answer as ApprovalAnswer);
    return 'accepted';
  } catch (thrown) {
    if (thrown instanceof TypeError) return 'TypeError';
    if (!(thrown instanceof LoopError) || thrown.code !== 'ANSWER_REFUSED') return `untyped: ${String(thrown)}`;
    return String((thrown.data as { readonly reason?: string }).reason);
  }
}

/** Returns the entries of a type. */
export function ofType(entries: readonly Entry[], type: string): readonly Entry[] {
  return entries.filter((entry) => entry.type === type);
}

/** Returns the journaled refusals of a session. */
export async function refusedIn(host: Host, session: string): Promise<readonly Entry[]> {
  return ofType(await host.archive.entries(session), 'rondo.approval.refused');
}

/** Seeded randomness. */
export interface RandomSource {
  /** Returns a number from 0 (inclusive) to 1 (exclusive). */
  next(): number;
  /** Returns an integer from 0 (inclusive) to `limit` (exclusive). */
  below(limit: number): number;
  pick<T>(list: readonly T[]): T;
  shuffle<T>(list: readonly T[]): T[];
}

/** Creates a random source that returns the same values for the same seed. */
export function randomFrom(seed: number): RandomSource {
  const next = seededRandom(seed);
  const below = (limit: number): number => Math.floor(next() * limit);
  const pick = <T>(list: readonly T[]): T => list[below(list.length)] as T;
  const shuffle = <T>(list: readonly T[]): T[] => {
    const remaining = [...list];
    return list.map(() => remaining.splice(below(remaining.length), 1)[0] as T);
  };
  return { next, below, pick, shuffle };
}

/** Returns every order of the integers from 0 to `count - 1`. */
export function permutations(count: number): number[][] {
  if (count === 0) return [[]];
  return permutations(count - 1).flatMap((shorter) =>
    Array.from({ length: count }, (_, index) => [...shorter.slice(0, index), count - 1, ...shorter.slice(index)]),
  );
}

/** Awaits work for a limited time. Returns 'timed out' if it takes longer. */
export async function within<T>(ms: number, work: Promise<T>): Promise<T | 'timed out'> {
  let timer: NodeJS.Timeout | undefined;
  const timeout = new Promise<'timed out'>((resolve) => {
    timer = setTimeout(() => resolve('timed out'), ms);
  });
  try {
    return await Promise.race([work, timeout]);
  } finally {
    clearTimeout(timer);
  }
}
