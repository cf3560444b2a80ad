/** What an agent's last words mean for its output: text is `{text}`, anything else is read against the schema. */

import type { Validator } from '../../json/schema.js';
import { type ParsedReply, parseReply } from '../reply.js';

/** Whether the output is more than text, so that the model has to be asked for JSON. */
export function expectsJson({ schema }: Validator): boolean {
  if (typeof schema !== 'object' || Object.keys(schema).length === 0 || schema.type === 'string') return false;
  const names = Object.keys((schema.properties ?? {}) as object);
  return names.length !== 1 || names[0] !== 'text';
}

export function parseAgentOutput(text: string, output: Validator): ParsedReply {
  if (expectsJson(output)) return parseReply(text, output);
  const plain = [{ text }, text].find((value) => output.isValid(value));
  return plain === undefined ? parseReply(text, output) : { value: plain, isValid: true };
}
