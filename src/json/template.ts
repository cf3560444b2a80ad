/**
 * Prompt templates: `{{name}}` and `{{a.b}}` are taken from the input, once. A value is never looked at again, so what
 * somebody writes into an input can not reach for another variable. A missing variable is an error, not an empty text.
 */
import { LoopError } from '../base/errors.js';
import type { Json } from '../protocol/json.js';

/** Makes the text of a prompt. */
export type RenderTemplate = (input: Json) => string;

const PLACEHOLDER = /\{\{([^{}]*)\}\}/g;

interface Placeholder {
  readonly name: string;
  readonly path: readonly string[];
}

export function compileTemplate(text: string, loopId: string): RenderTemplate {
  const texts: string[] = [];
  const holes: Placeholder[] = [];
  let from = 0;
  for (const found of text.matchAll(PLACEHOLDER)) {
    const name = (found[1] ?? '').trim();
    texts.push(text.slice(from, found.index));
    holes.push({ name, path: name.split('.') });
    from = found.index + found[0].length;
  }
  const last = text.slice(from);
  return (input) =>
    holes.map((hole, i) => texts[i] + renderValue(placeholderValue(input, hole, loopId))).join('') + last;
}

function placeholderValue(input: Json, { name, path }: Placeholder, loopId: string): Json {
  let value: Json | undefined = input;
  for (const step of path) {
    const holds = typeof value === 'object' && value !== null && Object.hasOwn(value, step);
    if (!holds) {
      const message = `The prompt of "${loopId}" asks for {{${name}}}, which the input does not have.`;
      throw new LoopError('TEMPLATE_FAILED', message, { variable: name });
    }
    value = (value as { readonly [key: string]: Json })[step];
  }
  return value as Json;
}

function renderValue(value: Json): string {
  if (typeof value === 'string') return value;
  return value === null ? '' : JSON.stringify(value);
}
