/** What a verb of the command line is: how it is asked for, and what does it, loaded when it is used. */
import type { Asked } from '../settings.js';
import type { Terminal } from './terminal.js';

export type Options = Readonly<Record<string, string | boolean | readonly string[] | undefined>>;

/** One use of a verb. */
export interface Invocation {
  readonly args: readonly (string | readonly string[] | undefined)[];
  readonly options: Options;
  readonly asked: Asked;
  readonly terminal: Terminal;
  /** Whether a program reads the answer. */
  readonly json: boolean;
}

/** Does the work and says with which code to end. */
export type Act = (invocation: Invocation) => Promise<number>;

export interface Verb {
  readonly name: string;
  readonly group: string;
  /** As in `<turn>` or `[files...]`. */
  readonly arguments: string;
  readonly about: string;
  /** Flags and what they mean, beside those that every verb has; one that repeats is a list. */
  readonly options: readonly (readonly [flags: string, means: string, often?: 'repeats'])[];
  readonly examples: readonly string[];
  load(): Promise<Act>;
}

/** The codes that a process ends with. */
export const exit = { ok: 0, failed: 1, paused: 2, unverified: 3, usage: 64, fault: 70, interrupted: 130 } as const;

/** An option that repeats. */
export function listOf(value: Options[string]): readonly string[] {
  return typeof value === 'object' ? value : [];
}

/** An argument or option that is text. */
export function textOf(value: Options[string]): string | undefined {
  return typeof value === 'string' ? value : undefined;
}
