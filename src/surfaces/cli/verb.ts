/** The declaration of a verb of the command line, and the exit codes of the process. */
import type { SettingsInput } from '../settings.js';
import type { Terminal } from './terminal.js';

/** The parsed options of a verb, by name. */
export type VerbOptions = Readonly<Record<string, string | boolean | readonly string[] | undefined>>;

/** One invocation of a verb. */
export interface Invocation {
  readonly args: readonly (string | readonly string[] | undefined)[];
  readonly options: VerbOptions;
  readonly settingsInput: SettingsInput;
  readonly terminal: Terminal;
  /** True if the output is JSON for a program. */
  readonly json: boolean;
}

/** Runs a verb and returns the exit code. */
export type VerbHandler = (invocation: Invocation) => Promise<number>;

/** A verb with its help texts. */
export interface Verb {
  readonly name: string;
  /** The heading under which the help lists the verb. */
  readonly group: string;
  /** The arguments, such as `<turn>` or `[files...]`. */
  readonly arguments: string;
  readonly description: string;
  /** The flags with their help texts, in addition to those of every verb. The value of a repeatable flag is a list. */
  readonly options: readonly (readonly [flags: string, help: string, repetition?: 'repeats'])[];
  readonly examples: readonly string[];
  load(): Promise<VerbHandler>;
}

/** The exit codes of the process. */
export const exitCodes = {
  ok: 0,
  failed: 1,
  paused: 2,
  unverified: 3,
  usage: 64,
  fault: 70,
  interrupted: 130,
} as const;

/** Returns the values of a repeatable option. */
export function listOption(value: VerbOptions[string]): readonly string[] {
  return typeof value === 'object' ? value : [];
}

/** Returns the value of a text argument or option; undefined if it is absent. */
export function textOption(value: VerbOptions[string]): string | undefined {
  return typeof value === 'string' ? value : undefined;
}
