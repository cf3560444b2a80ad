/** What an agent's last words mean for its output: text is `{text}`, anything else is read against the schema. */

import type { Validator } from '../../json/schema.js';
import { type Reading, readReply } from '../reply.js';

/** Whether the output is more than text, so that the model has to be asked for JSON. */
export function wantsJson({ schema }: Validator): boolean {
  if (typeof schema !== 'object' || Object.keys(schema).length === 0 || schema.type === 'string') return false;
  const names = Object.keys((schema.properties ?? {}) as object);
  return names.length !== 1 || names[0] !== 'text';
}

export function answerOf(text: string, output: Validator): Reading {
  if (wantsJson(output)) return readReply(text, output);
  const plain = [{ text }, text].find((value) => output.check(value));
  return plain === undefined ? readReply(text, output) : { value: plain, fits: true };
}
