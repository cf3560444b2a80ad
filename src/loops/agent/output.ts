/**
 * Parses the final reply of an agent into its output: text becomes `{text}`, and a structured output is parsed as JSON.
 */

import type { Validator } from '../../json/schema.js';
import { type ParsedReply, parseReply } from '../reply.js';

/**
 * True if the output is structured, so that the model must answer with JSON. A schema without constraints, of the type
 * `string`, or with the single property `text` is not structured.
 */
export function expectsJson({ schema }: Validator): boolean {
  if (typeof schema !== 'object' || Object.keys(schema).length === 0 || schema.type === 'string') return false;
  const names = Object.keys((schema.properties ?? {}) as object);
  return names.length !== 1 || names[0] !== 'text';
}

/** Returns the output in the final reply, and whether it is valid. */
export function parseAgentOutput(text: string, output: Validator): ParsedReply {
  if (expectsJson(output)) return parseReply(text, output);
  const plain = [{ text }, text].find((value) => output.isValid(value));
  return plain === undefined ? parseReply(text, output) : { value: plain, isValid: true };
}
