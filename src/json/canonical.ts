/** One text for one JSON value: keys in order of their code units, no white space. What digests are made over. */
import type { Json } from '../protocol/json.js';

export function canonicalJson(value: Json): string {
  if (typeof value !== 'object' || value === null) return JSON.stringify(value);
  if (Array.isArray(value)) return `[${value.map((item: Json) => canonicalJson(item)).join(',')}]`;
  const fields = value as { readonly [key: string]: Json };
  const members = Object.keys(fields)
    .sort()
    .map((key) => `${JSON.stringify(key)}:${canonicalJson(fields[key] as Json)}`);
  return `{${members.join(',')}}`;
}
