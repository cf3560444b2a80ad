/**
 * Prompt templates: `{{name}}` and `{{a.b}}` are taken from the input, once. A value is never looked at again, so what
 * somebody writes into an input can not reach for another variable. A missing variable is an error, not an empty text.
 */
import { LoopError } from '../base/errors.js';
import type { Json } from '../protocol/json.js';

/** Makes the text of a prompt. */
export type Template = (input: Json) => string;

const PLACEHOLDER = /\{\{([^{}]*)\}\}/g;

interface Hole {
  readonly name: string;
  readonly names: readonly string[];
}

export function compileTemplate(text: string, loopId: string): Template {
  const texts: string[] = [];
  const holes: Hole[] = [];
  let from = 0;
  for (const found of text.matchAll(PLACEHOLDER)) {
    const name = (found[1] ?? '').trim();
    texts.push(text.slice(from, found.index));
    holes.push({ name, names: name.split('.') });
    from = found.index + found[0].length;
  }
  const last = text.slice(from);
  return (input) => holes.map((hole, i) => texts[i] + shown(valueAt(input, hole, loopId))).join('') + last;
}

function valueAt(input: Json, { name, names }: Hole, loopId: string): Json {
  let value: Json | undefined = input;
  for (const step of names) {
    const holds = typeof value === 'object' && value !== null && Object.hasOwn(value, step);
    if (!holds) {
      const message = `The prompt of "${loopId}" asks for {{${name}}}, which the input does not have.`;
      throw new LoopError('TEMPLATE_FAILED', message, { variable: name });
    }
    value = (value as { readonly [key: string]: Json })[step];
  }
  return value as Json;
}

function shown(value: Json): string {
  if (typeof value === 'string') return value;
  return value === null ? '' : JSON.stringify(value);
}
