/**
 * Prompt templates. `{{name}}` and `{{a.b}}` are replaced by values of the input: text as it is, null by nothing, other
 * values as JSON. Values are not expanded again, so text in an input cannot refer to another variable (template
 * injection). A missing variable is an error.
 */
import { LoopError } from '../base/errors.js';
import type { Json } from '../protocol/json.js';
import { PlaceholderText, valueAtName } from './placeholder-text.js';

/** Renders the text of a prompt. */
type RenderTemplate = (input: Json) => string;

const PLACEHOLDER = /\{\{([^{}]*)\}\}/g;

/** Compiles a template. The rendering function throws TEMPLATE_FAILED for a variable that the input does not have. */
export function compileTemplate(text: string, loopId: string): RenderTemplate {
  const literals: string[] = [];
  const names: string[] = [];
  let from = 0;
  for (const match of text.matchAll(PLACEHOLDER)) {
    literals.push(text.slice(from, match.index));
    names.push((match[1] ?? '').trim());
    from = match.index + match[0].length;
  }
  const template = new PlaceholderText([...literals, text.slice(from)], names);
  return (input) =>
    template.fill((name) => {
      const value = valueAtName(input, name);
      if (value !== undefined) return renderValue(value);
      const message = `The prompt of "${loopId}" uses {{${name}}}, which the input does not have.`;
      throw new LoopError('TEMPLATE_FAILED', message, { variable: name });
    });
}

function renderValue(value: Json): string {
  if (typeof value === 'string') return value;
  return value === null ? '' : JSON.stringify(value);
}
