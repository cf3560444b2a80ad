// What the tests of approvals share: hosts whose tools count what they did, chance that follows from a seed, and answers.

import { seededRandom } from '../../src/adapters/system/seeded-ids.js';
import { LoopError } from '../../src/base/errors.js';
import type { Host } from '../../src/host/host.js';
import type { ToolFunction } from '../../src/loops/tool-implementation.js';
import type { Approval, ApprovalAnswer } from '../../src/protocol/approval.js';
import type { Entry } from '../../src/protocol/entry.js';
import type { EventEnvelope } from '../../src/protocol/events.js';
import type { Json } from '../../src/protocol/json.js';

export const SEED = Number(process.env.RONDO_SEED ?? 1);
export const REFUSALS = 'rondo:refusals';
export const ASK = { policy: { approval: 'ask' } } as const;

/** What was done, in order, with which arguments. */
export class Deeds {
  readonly done: Json[] = [];

  /** A tool that does nothing but leave a trace, and gives its arguments back. */
  readonly act: ToolFunction = (input) => {
    this.done.push(input);
    return input;
  };

  get count(): number {
    return this.done.length;
  }
}

export const tick = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));

export async function ticks(count = 10): Promise<void> {
  for (let i = 0; i < count; i++) await tick();
}

/** Something that is waited for until it is let go. */
export function gate(): { readonly passed: Promise<void>; open(): void } {
  let open = (): void => {};
  const passed = new Promise<void>((resolve) => {
    open = resolve;
  });
  return { passed, open: () => open() };
}

/** The one approval that waits. */
export async function onlyPending(host: Host, session?: string): Promise<Approval> {
  const all = await host.archive.approvals(session);
  const [approval] = all;
  if (approval === undefined || all.length > 1) throw new Error(`${all.length} approvals wait, not one.`);
  return approval;
}

/** The ids of approvals that were shown on envelopes, in the order in which they were asked for. */
export function shownIds(envelopes: readonly EventEnvelope[]): readonly string[] {
  const ids = envelopes.flatMap(({ type, content }) => (type === 'tool-call' ? [content.approvalId ?? ''] : []));
  return [...new Set(ids)].filter((id) => id !== '');
}

/** How an answer was taken: 'taken', the reason of a refusal, or what else was thrown. */
export async function told(host: Host, answer: unknown): Promise<string> {
  try {
    await host.answer(answer as ApprovalAnswer);
    return 'taken';
  } catch (thrown) {
    if (thrown instanceof TypeError) return 'TypeError';
    if (!(thrown instanceof LoopError) || thrown.code !== 'ANSWER_REFUSED') return `untyped: ${String(thrown)}`;
    return String((thrown.data as { readonly reason?: string }).reason);
  }
}

export function ofType(entries: readonly Entry[], type: string): readonly Entry[] {
  return entries.filter((entry) => entry.type === type);
}

/** What was journaled of answers that were not taken. */
export async function refusedIn(host: Host, session: string): Promise<readonly Entry[]> {
  return ofType(await host.archive.entries(session), 'rondo.approval.refused');
}

/** Chance with a few ways to draw from it. */
export interface Dice {
  random(): number;
  below(limit: number): number;
  pick<T>(list: readonly T[]): T;
  shuffled<T>(list: readonly T[]): T[];
}

export function diceOf(seed: number): Dice {
  const random = seededRandom(seed);
  const below = (limit: number): number => Math.floor(random() * limit);
  const pick = <T>(list: readonly T[]): T => list[below(list.length)] as T;
  const shuffled = <T>(list: readonly T[]): T[] => {
    const left = [...list];
    return list.map(() => left.splice(below(left.length), 1)[0] as T);
  };
  return { random, below, pick, shuffled };
}

/** Every order of 0 to count - 1. */
export function permutations(count: number): number[][] {
  if (count === 0) return [[]];
  return permutations(count - 1).flatMap((shorter) =>
    Array.from({ length: count }, (_, place) => [...shorter.slice(0, place), count - 1, ...shorter.slice(place)]),
  );
}

/** Ends within its time, or says that it hangs. */
export async function within<T>(ms: number, work: Promise<T>): Promise<T | 'it hangs'> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<'it hangs'>((resolve) => {
    timer = setTimeout(() => resolve('it hangs'), ms);
  });
  try {
    return await Promise.race([work, late]);
  } finally {
    clearTimeout(timer);
  }
}
