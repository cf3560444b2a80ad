/** What a verb of the command line is: how it is asked for, and what does it, loaded when it is used. */
import type { SettingsInput } from '../settings.js';
import type { Terminal } from './terminal.js';

export type VerbOptions = Readonly<Record<string, string | boolean | readonly string[] | undefined>>;

/** One use of a verb. */
export interface Invocation {
  readonly args: readonly (string | readonly string[] | undefined)[];
  readonly options: VerbOptions;
  readonly settingsInput: SettingsInput;
  readonly terminal: Terminal;
  /** Whether a program reads the answer. */
  readonly json: boolean;
}

/** Does the work and says with which code to end. */
export type VerbHandler = (invocation: Invocation) => Promise<number>;

export interface Verb {
  readonly name: string;
  readonly group: string;
  /** As in `<turn>` or `[files...]`. */
  readonly arguments: string;
  readonly description: string;
  /** Flags and what they mean, beside those that every verb has; one that repeats is a list. */
  readonly options: readonly (readonly [flags: string, means: string, often?: 'repeats'])[];
  readonly examples: readonly string[];
  load(): Promise<VerbHandler>;
}

/** The codes that a process ends with. */
export const exitCodes = {
  ok: 0,
  failed: 1,
  paused: 2,
  unverified: 3,
  usage: 64,
  fault: 70,
  interrupted: 130,
} as const;

/** An option that repeats. */
export function listOption(value: VerbOptions[string]): readonly string[] {
  return typeof value === 'object' ? value : [];
}

/** An argument or option that is text. */
export function textOption(value: VerbOptions[string]): string | undefined {
  return typeof value === 'string' ? value : undefined;
}
