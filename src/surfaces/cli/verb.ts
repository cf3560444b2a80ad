/** The declaration of a verb (a subcommand such as `rondo run`), and the exit codes of the process. */
import type { SettingsInput } from '../settings.js';
import type { Terminal } from './terminal.js';

/** The parsed options of a verb, by name. */
export type VerbOptions = Readonly<Record<string, string | boolean | readonly string[] | undefined>>;

/** One invocation of a verb. */
export interface Invocation {
  readonly args: readonly (string | readonly string[] | undefined)[];
  readonly options: VerbOptions;
  /** The sources of the settings: flags, environment variables and the working directory. */
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
  /** The values of the argument `<command>`, each with its arguments and its help text. */
  readonly commands?: readonly (readonly [usage: string, help: string])[];
  /**
   * The flags with their help texts, in addition to those of every verb. The value of a flag that repeats is a list.
   */
  readonly options: readonly (readonly [flags: string, help: string, repetition?: 'repeats'])[];
  readonly examples: readonly string[];
  /** Imports the handler, so that a process loads only the code of its verb. */
  load(): Promise<VerbHandler>;
}

/** The exit codes of the process. */
export const exitCodes = {
  ok: 0,
  /** The turn failed, stopped, was cancelled or not found, or the verb found a problem. */
  failed: 1,
  /** The turn has paused and waits for an approval, a resolution or a signal. */
  paused: 2,
  /** A verification found a difference or damage: `replay`, `conformance`, `doctor`. */
  unverified: 3,
  /** The command line is wrong. */
  usage: 64,
  /** The runtime itself failed, or the output was lost. */
  fault: 70,
  interrupted: 130,
} as const;

/** Returns the values of an option that repeats; an empty list if it is absent. */
export function listOption(value: VerbOptions[string]): readonly string[] {
  return typeof value === 'object' ? value : [];
}

/** Returns the value of an argument or option if it is a string; otherwise undefined. */
export function textOption(value: VerbOptions[string]): string | undefined {
  return typeof value === 'string' ? value : undefined;
}
