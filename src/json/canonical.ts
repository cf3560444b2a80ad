/** Canonical JSON, the input of digests: keys sorted by code units, no white space. Equal values have equal texts. */
import type { Json } from '../protocol/json.js';

/** Returns the canonical JSON text of a value. */
export function canonicalJson(value: Json): string {
  if (typeof value !== 'object' || value === null) return JSON.stringify(value);
  if (Array.isArray(value)) return `[${value.map((item: Json) => canonicalJson(item)).join(',')}]`;
  const fields = value as { readonly [key: string]: Json };
  const members = Object.keys(fields)
    .sort()
    .map((key) => `${JSON.stringify(key)}:${canonicalJson(fields[key] as Json)}`);
  return `{${members.join(',')}}`;
}
