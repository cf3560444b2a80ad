/**
 * What a model's text means for a loop. JSON is read from the whole text or from a fenced block in it; a loop that
 * returns text gets the text; anything else is `{text}`. The first reading that fits the output schema is the answer.
 */

import type { Validator } from '../json/schema.js';
import type { Json } from '../protocol/json.js';

export interface ParsedReply {
  readonly value: Json;
  readonly isValid: boolean;
}

const CODE_FENCE = /```(?:json)?[ \t]*\r?\n/gi;

/** The answer in a reply, and whether it fits. One that does not is the likeliest of what was tried. */
export function parseReply(text: string, output: Validator): ParsedReply {
  const readings = possibleValues(text, output);
  const fitting = readings.find((value) => output.isValid(value));
  if (fitting !== undefined) return { value: fitting, isValid: true };
  return { value: readings[0] ?? { text }, isValid: false };
}

function possibleValues(text: string, { schema }: Validator): readonly Json[] {
  const readings: Json[] = [];
  const wantsText = typeof schema === 'object' && schema.type === 'string';
  if (wantsText) readings.push(text);
  const constrained = typeof schema === 'object' && Object.keys(schema).length > 0;
  for (const candidate of jsonCandidates(text)) {
    // A bare word or number is JSON only for a loop that asks for one.
    if (!constrained && !/^[[{]/.test(candidate)) continue;
    const value = parseJson(candidate);
    if (value !== undefined) readings.push(value);
  }
  readings.push({ text });
  if (!wantsText) readings.push(text);
  return readings;
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
