/** The headers that a definition may set: what they may be called and hold, and where their secrets come from. */

import { LoopError } from '../../base/errors.js';
import { isObject } from '../../base/own-property.js';
import type { Json } from '../../protocol/json.js';
import { type ConfigRule, isVariableName } from './config.js';

export type StringMap = { readonly [name: string]: string };

/** Set by us or by the connection. */
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
/** Secrets do not belong in definitions. */
const secretHeaders = ['api-key', 'authorization', 'cookie', 'proxy-authorization', 'x-api-key', 'x-auth-token'];

const RESERVED_NOTE = `Rondo sets ${reservedHeaders.join(', ')} itself`;

function isSettableHeader(name: string): boolean {
  return /^[A-Za-z0-9!#$%&'*+.^_`|~-]{1,128}$/.test(name) && !reservedHeaders.includes(name.toLowerCase());
}

/** Visible characters of Latin-1, space and tab. */
function isHeaderValue(value: Json): boolean {
  return typeof value === 'string' && /^[\t -~\u00a0-\u00ff]*$/.test(value);
}

export const literalHeadersRule: ConfigRule<StringMap> = {
  requirement: `an object of header names and texts. For secrets (${secretHeaders.join(', ')}) use config.headersFromEnv; ${RESERVED_NOTE}`,
  accepts: (value): value is StringMap =>
    isObject(value) &&
    Object.entries(value).every(
      ([name, text]) => isSettableHeader(name) && !secretHeaders.includes(name.toLowerCase()) && isHeaderValue(text),
    ),
};

export const variableHeadersRule: ConfigRule<StringMap> = {
  requirement: `an object of header names and names of variables, like {"Authorization": "MY_TOKEN"}; ${RESERVED_NOTE}`,
  accepts: (value): value is StringMap =>
    isObject(value) &&
    Object.entries(value).every(([name, variable]) => isSettableHeader(name) && isVariableName(variable)),
};

/** The headers with what the environment holds for them. Errors never show a value. */
export function headersFromEnvironment(source: NodeJS.ProcessEnv, wanted: StringMap): StringMap {
  const found = Object.entries(wanted).map(([header, variable]) => {
    const value = (Object.hasOwn(source, variable) ? source[variable] : undefined)?.trim() ?? '';
    if (value !== '' && isHeaderValue(value)) return [header, value] as const;
    const what = value === '' ? 'is not set' : 'holds characters that a header may not';
    throw new LoopError('TOOL_FAILED', `The header ${header} comes from ${variable}, which ${what}.`, { variable });
  });
  return Object.fromEntries(found);
}

/** A key may hold what a header may not; those characters are percent-encoded, the same way each time. */
export function encodeHeaderValue(key: string): string {
  return [...key].map((point) => (/^[!-$&-~]$/.test(point) ? point : percentEncode(point))).join('');
}

function percentEncode(point: string): string {
  return [...Buffer.from(point)].map((byte) => `%${byte.toString(16).toUpperCase().padStart(2, '0')}`).join('');
}
