/** The options of the toolbox and their validation. The same rules apply to options in code and in a definition. */

import type { Socket } from 'node:net';
import { wholeNumbers } from '../../base/number-range.js';
import { isObject } from '../../base/own-property.js';

/** Options of `run_command`. */
export interface CommandOptions {
  /**
   * What to do if bubblewrap does not work: `required` runs no commands, `preferred` runs them without a sandbox. `off`
   * never uses a sandbox.
   * @default 'required'
   */
  readonly sandbox?: 'required' | 'preferred' | 'off';
  /**
   * True if a sandboxed command can use the network, including the loopback interface.
   * @default false
   */
  readonly network?: boolean;
  /**
   * The maximum duration of a command in milliseconds.
   * @default 120000
   */
  readonly timeoutMs?: number;
  /**
   * The maximum size of the returned output: half of it from the beginning, half from the end. This is also the maximum
   * size of the streamed output.
   * @default 65536
   */
  readonly maxOutputBytes?: number;
  /**
   * The maximum number of processes of a sandboxed command at a time.
   * @default 256
   */
  readonly maxProcesses?: number;
  /**
   * The maximum memory of all processes of a sandboxed command together, including files in its /tmp and /dev/shm.
   * @default 4 GiB
   */
  readonly maxMemoryBytes?: number;
  /**
   * The maximum size of a file that a sandboxed command writes.
   * @default 1 GiB
   */
  readonly maxFileBytes?: number;
  /** The environment variables of a command in addition to PATH, LANG and HOME, which they can override. */
  readonly env?: { readonly [name: string]: string };
  /**
   * The absolute path of the program bwrap.
   * @default the first of the usual paths that exists
   */
  readonly bubblewrap?: string;
}

/** Options of `fetch_url`. */
export interface FetchOptions {
  /**
   * The hosts that may be fetched, such as `example.com` or `*.example.com`, which matches subdomains only.
   * @default every public host
   */
  readonly allow?: readonly string[];
  /**
   * True if private addresses, and ports other than 80, 443, 8080 and 8443, may be used.
   * @default false
   */
  readonly allowPrivate?: boolean;
  /**
   * The maximum duration of a fetch in milliseconds, including redirects.
   * @default 30000
   */
  readonly timeoutMs?: number;
  /**
   * The maximum number of bytes that are read of a page.
   * @default 1048576
   */
  readonly maxBytes?: number;
  /**
   * The maximum number of redirects.
   * @default 5
   */
  readonly maxRedirects?: number;
  /**
   * Returns all addresses of a host.
   * @default the system resolver
   */
  readonly resolve?: (hostname: string) => Promise<readonly string[]>;
  /**
   * Opens the connection to an address that was checked.
   * @default a TCP connection
   */
  readonly connect?: (address: string, port: number) => Socket;
}

/** Options of {@link toolbox}. */
export interface ToolboxOptions {
  /** The directories that the tools may use; at least one. Relative paths of the model start at the first. */
  readonly roots: readonly string[];
  readonly commands?: CommandOptions;
  readonly fetch?: FetchOptions;
}

/** The rule for one option. The requirement completes the message "must be …". */
type OptionRule = readonly [requirement: string, accepts: (value: unknown) => boolean];
type OptionRules<T> = { readonly [K in keyof T]-?: OptionRule };

const booleanRule: OptionRule = ['true or false', (value) => typeof value === 'boolean'];
const functionRule: OptionRule = ['a function', (value) => typeof value === 'function'];
const isNonEmptyString = (value: unknown): boolean =>
  typeof value === 'string' && value !== '' && !value.includes('\0');

function integerBetween(min: number, max: number): OptionRule {
  const { description, includes } = wholeNumbers(min, max);
  return [description, includes];
}

const commandRules: OptionRules<CommandOptions> = {
  sandbox: [
    '"required", "preferred" or "off"',
    (value) => value === 'required' || value === 'preferred' || value === 'off',
  ],
  network: booleanRule,
  timeoutMs: integerBetween(1, 3_600_000),
  maxOutputBytes: integerBetween(1000, 1_000_000),
  maxProcesses: integerBetween(4, 100_000),
  maxMemoryBytes: integerBetween(16 * 1024 ** 2, 2 ** 50),
  maxFileBytes: integerBetween(1024, 2 ** 50),
  env: ['an object with environment variable names as keys and strings as values', isEnvironment],
  bubblewrap: ['the absolute path of a program', (value) => isNonEmptyString(value) && String(value).startsWith('/')],
};

const fetchRules: OptionRules<FetchOptions> = {
  allow: [
    'an array of hosts such as "example.com" or "*.example.com"',
    (value) =>
      Array.isArray(value) && value.every((host) => /^(?:\*\.)?[a-z0-9-]+(?:\.[a-z0-9-]+)*$/.test(String(host))),
  ],
  allowPrivate: booleanRule,
  timeoutMs: integerBetween(1, 600_000),
  maxBytes: integerBetween(1, 16 * 1024 * 1024),
  maxRedirects: integerBetween(0, 20),
  resolve: functionRule,
  connect: functionRule,
};

const toolboxRules: OptionRules<ToolboxOptions> = {
  roots: [
    'an array of at least one and at most 100 directories',
    (value) => Array.isArray(value) && value.length > 0 && value.length <= 100 && value.every(isNonEmptyString),
  ],
  commands: ['an object', isObject],
  fetch: ['an object', isObject],
};

/**
 * Returns the first problem of the options; undefined if they are valid. No option is required, not even `roots`.
 * `where` names the options in the message.
 */
export function findOptionsProblem(options: unknown, where: string): string | undefined {
  if (!isObject(options)) return `${where} must be an object.`;
  return (
    findRuleProblem(options, toolboxRules, where) ??
    findRuleProblem(options.commands ?? {}, commandRules, `${where}.commands`) ??
    findRuleProblem(options.fetch ?? {}, fetchRules, `${where}.fetch`)
  );
}

function findRuleProblem<T>(options: unknown, rules: OptionRules<T>, where: string): string | undefined {
  const names = Object.keys(rules) as (keyof T & string)[];
  for (const [key, value] of Object.entries(options as object)) {
    const name = names.find((candidate) => candidate === key);
    if (name === undefined) return `${where}.${key} is not an option; available are ${names.join(', ')}.`;
    const [requirement, accepts] = rules[name];
    if (value !== undefined && !accepts(value)) return `${where}.${key} must be ${requirement}.`;
  }
  return undefined;
}

function isEnvironment(value: unknown): boolean {
  const namePattern = /^[A-Za-z_][A-Za-z0-9_]{0,255}$/;
  if (!isObject(value)) return false;
  return Object.entries(value).every(
    ([name, text]) => namePattern.test(name) && typeof text === 'string' && !text.includes('\0'),
  );
}
