/**
 * Parses the text of a model into the output of a loop. Candidates are the whole text as JSON, JSON in its fenced code
 * blocks, `{text}` and the plain text. The first candidate that is valid against the output schema is the output. The
 * plain text comes first if the schema has the type `string`.
 */

import type { Validator } from '../json/schema.js';
import type { Json } from '../protocol/json.js';

/** The output in a reply, and whether it is valid. */
export interface ParsedReply {
  readonly value: Json;
  readonly isValid: boolean;
}

const CODE_FENCE = /```(?:json)?[ \t]*\r?\n/gi;

/** Returns the first valid candidate. If none is valid, returns the most likely one. */
export function parseReply(text: string, output: Validator): ParsedReply {
  const candidates = candidateValues(text, output);
  const valid = candidates.find((value) => output.isValid(value));
  if (valid !== undefined) return { value: valid, isValid: true };
  return { value: candidates[0] ?? { text }, isValid: false };
}

/** Returns the possible outputs in a text, most likely first. */
function candidateValues(text: string, { schema }: Validator): readonly Json[] {
  const values: Json[] = [];
  const expectsText = typeof schema === 'object' && schema.type === 'string';
  if (expectsText) values.push(text);
  const isConstrained = typeof schema === 'object' && Object.keys(schema).length > 0;
  for (const candidate of jsonCandidates(text)) {
    // Without a constraining schema, a bare word or number is text, although it may be valid JSON.
    if (!isConstrained && !/^[[{]/.test(candidate)) continue;
    const value = parseJson(candidate);
    if (value !== undefined) values.push(value);
  }
  values.push({ text });
  if (!expectsText) values.push(text);
  return values;
}

function jsonCandidates(text: string): readonly string[] {
  const candidates = [text.trim()];
  for (const opening of text.matchAll(CODE_FENCE)) {
    const from = opening.index + opening[0].length;
    const end = text.indexOf('```', from);
    if (end !== -1 && candidates.length < 10) candidates.push(text.slice(from, end).trim());
  }
  return candidates;
}

function parseJson(text: string): Json | undefined {
  try {
    return JSON.parse(text) as Json;
  } catch {
    return undefined;
  }
}
