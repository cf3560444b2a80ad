/**
 * The HTTP headers of a tool: rules for the headers that a definition may set, values from environment variables, and
 * the encoding of idempotency keys.
 */

import { LoopError } from '../../base/errors.js';
import { isObject } from '../../base/own-property.js';
import type { Json } from '../../protocol/json.js';
import { type ConfigRule, isVariableName } from './config.js';

/** An object with string values. */
export type StringMap = { readonly [name: string]: string };

/** Headers that a definition cannot set, because Rondo or its HTTP client controls them. */
const reservedHeaders = [
  'accept-encoding',
  'connection',
  'content-length',
  'content-type',
  'expect',
  'host',
  'idempotency-key',
  'keep-alive',
  'te',
  'trailer',
  'transfer-encoding',
  'upgrade',
];
/** Headers that usually contain a secret. A definition can take their values only from environment variables. */
const secretHeaders = ['api-key', 'authorization', 'cookie', 'proxy-authorization', 'x-api-key', 'x-auth-token'];

const RESERVED_NOTE = `Rondo sets ${reservedHeaders.join(', ')} itself`;

function isSettableHeader(name: string): boolean {
  return /^[A-Za-z0-9!#$%&'*+.^_`|~-]{1,128}$/.test(name) && !reservedHeaders.includes(name.toLowerCase());
}

/** Accepts the printable characters of Latin-1, spaces and tabs. */
function isHeaderValue(value: Json): boolean {
  return typeof value === 'string' && /^[\t -~\u00a0-\u00ff]*$/.test(value);
}

/** The rule for `config.headers`. */
export const literalHeadersRule: ConfigRule<StringMap> = {
  requirement: `an object with header names as keys and strings as values. For secrets (${secretHeaders.join(', ')}) use config.headersFromEnv; ${RESERVED_NOTE}`,
  accepts: (value): value is StringMap =>
    isObject(value) &&
    Object.entries(value).every(
      ([name, text]) => isSettableHeader(name) && !secretHeaders.includes(name.toLowerCase()) && isHeaderValue(text),
    ),
};

/** The rule for `config.headersFromEnv`. */
export const envHeadersRule: ConfigRule<StringMap> = {
  requirement: `an object with header names as keys and environment variable names as values, such as {"Authorization": "MY_TOKEN"}; ${RESERVED_NOTE}`,
  accepts: (value): value is StringMap =>
    isObject(value) &&
    Object.entries(value).every(([name, variable]) => isSettableHeader(name) && isVariableName(variable)),
};

/**
 * Reads the value of each header from its environment variable and trims it. Throws TOOL_FAILED if a variable is unset,
 * blank or not a valid header value. The error does not contain the value.
 */
export function headersFromEnvironment(env: NodeJS.ProcessEnv, variables: StringMap): StringMap {
  const headers = Object.entries(variables).map(([header, variable]) => {
    const value = (Object.hasOwn(env, variable) ? env[variable] : undefined)?.trim() ?? '';
    if (value !== '' && isHeaderValue(value)) return [header, value] as const;
    const problem = value === '' ? 'is not set' : 'contains characters that are not allowed in a header';
    throw new LoopError('TOOL_FAILED', `The header ${header} comes from ${variable}, which ${problem}.`, { variable });
  });
  return Object.fromEntries(headers);
}

/** Percent-encodes an idempotency key. Only printable ASCII characters other than the space and `%` are kept. */
export function encodeIdempotencyKey(key: string): string {
  return [...key].map((character) => (/^[!-$&-~]$/.test(character) ? character : percentEncode(character))).join('');
}

function percentEncode(character: string): string {
  return [...Buffer.from(character)].map((byte) => `%${byte.toString(16).toUpperCase().padStart(2, '0')}`).join('');
}
