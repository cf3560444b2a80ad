/** What a toolbox is told, and what is wrong with it. The same rules hold for options in code and in a definition. */

import type { Socket } from 'node:net';
import { wholeNumbers } from '../../base/number-range.js';
import { isObject } from '../../base/own-property.js';

/** How commands run. */
export interface CommandOptions {
  /** `required` (the default) runs nothing where bubblewrap does not work; `preferred` then runs without; `off` never uses it. */
  readonly sandbox?: 'required' | 'preferred' | 'off';
  /** True to give sandboxed commands network access, loopback included. @default false */
  readonly network?: boolean;
  /** The maximum duration of a command in milliseconds. @default 120000 */
  readonly timeoutMs?: number;
  /** How much output is returned, half of it from the beginning and half from the end. @default 65536 */
  readonly maxOutputBytes?: number;
  /** How many processes a sandboxed command may have at a time. @default 256 */
  readonly maxProcesses?: number;
  /** How much memory all processes of a sandboxed command may use together, files in its /tmp included. @default 4 GiB */
  readonly maxMemoryBytes?: number;
  /** How large a file may become that a sandboxed command writes. @default 1 GiB */
  readonly maxFileBytes?: number;
  /** All that a command finds in its environment beside PATH, LANG and HOME. */
  readonly env?: { readonly [name: string]: string };
  /** The path of bwrap. @default the standard locations */
  readonly bubblewrap?: string;
}

/** What may be fetched. */
export interface FetchOptions {
  /** Allowed hosts, such as `example.com` or `*.example.com`. @default all public hosts */
  readonly allow?: readonly string[];
  /** True to allow addresses and ports that are not public. @default false */
  readonly allowPrivate?: boolean;
  /** The timeout for all redirects together, in milliseconds. @default 30000 */
  readonly timeoutMs?: number;
  /** The maximum size of a page in bytes. @default 1048576 */
  readonly maxBytes?: number;
  /** @default 5 */
  readonly maxRedirects?: number;
  /** Returns all addresses of a name. @default the system resolver */
  readonly resolve?: (hostname: string) => Promise<readonly string[]>;
  /** Opens the connection to an address that was checked. */
  readonly connect?: (address: string, port: number) => Socket;
}

/** What the tools may do, and where. */
export interface ToolboxOptions {
  /** Directories, at least one; relative paths of the model start at the first. */
  readonly roots: readonly string[];
  readonly commands?: CommandOptions;
  readonly fetch?: FetchOptions;
}

/** What a key must hold, in words and in code. */
type OptionRule = readonly [must: string, fits: (value: unknown) => boolean];
type OptionRules<T> = { readonly [K in keyof T]-?: OptionRule };

const booleanRule: OptionRule = ['true or false', (value) => typeof value === 'boolean'];
const functionRule: OptionRule = ['a function', (value) => typeof value === 'function'];
const isNonEmptyText = (value: unknown): boolean => typeof value === 'string' && value !== '' && !value.includes('\0');

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
  env: ['an object of texts, with names as NAME_1', isEnvironment],
  bubblewrap: ['the absolute path of a program', (value) => isNonEmptyText(value) && String(value).startsWith('/')],
};

const fetchRules: OptionRules<FetchOptions> = {
  allow: [
    'a list of hosts like "example.com" or "*.example.com"',
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
    'a list of directories with at least one in it',
    (value) => Array.isArray(value) && value.length > 0 && value.length <= 100 && value.every(isNonEmptyText),
  ],
  commands: ['an object', isObject],
  fetch: ['an object', isObject],
};

/** What is wrong with the options, or undefined; `where` is how they are called. */
export function findOptionsProblem(options: unknown, where: string): string | undefined {
  if (!isObject(options)) return `${where} must be an object.`;
  return (
    findRuleProblem(options, toolboxRules, where) ??
    findRuleProblem(options.commands ?? {}, commandRules, `${where}.commands`) ??
    findRuleProblem(options.fetch ?? {}, fetchRules, `${where}.fetch`)
  );
}

function findRuleProblem<T>(given: unknown, rules: OptionRules<T>, where: string): string | undefined {
  const known = Object.keys(rules) as (keyof T & string)[];
  for (const [key, value] of Object.entries(given as object)) {
    const name = known.find((candidate) => candidate === key);
    if (name === undefined) return `${where}.${key} is not known; known are ${known.join(', ')}.`;
    const [must, fits] = rules[name];
    if (value !== undefined && !fits(value)) return `${where}.${key} must be ${must}.`;
  }
  return undefined;
}

function isEnvironment(value: unknown): boolean {
  const named = /^[A-Za-z_][A-Za-z0-9_]{0,255}$/;
  if (!isObject(value)) return false;
  return Object.entries(value).every(
    ([name, text]) => named.test(name) && typeof text === 'string' && !text.includes('\0'),
  );
}
