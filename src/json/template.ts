/**
 * Prompt templates. `{{name}}` and `{{a.b}}` are replaced by values of the input: text as it is, null by nothing, other
 * values as JSON. Values are not expanded again, so text in an input cannot refer to another variable (template
 * injection). A missing variable is an error.
 */
import { LoopError } from '../base/errors.js';
import type { Json } from '../protocol/json.js';

/** Renders the text of a prompt. */
type RenderTemplate = (input: Json) => string;

const PLACEHOLDER = /\{\{([^{}]*)\}\}/g;

interface Placeholder {
  readonly name: string;
  readonly path: readonly string[];
}

/** Compiles a template. The rendering function throws TEMPLATE_FAILED for a variable that the input does not have. */
export function compileTemplate(text: string, loopId: string): RenderTemplate {
  const literals: string[] = [];
  const placeholders: Placeholder[] = [];
  let from = 0;
  for (const match of text.matchAll(PLACEHOLDER)) {
    const name = (match[1] ?? '').trim();
    literals.push(text.slice(from, match.index));
    placeholders.push({ name, path: name.split('.') });
    from = match.index + match[0].length;
  }
  const lastLiteral = text.slice(from);
  return (input) => {
    const rendered = placeholders.map(
      (placeholder, i) => literals[i] + renderValue(placeholderValue(input, placeholder, loopId)),
    );
    return rendered.join('') + lastLiteral;
  };
}

function placeholderValue(input: Json, { name, path }: Placeholder, loopId: string): Json {
  let value: Json | undefined = input;
  for (const member of path) {
    const hasMember = typeof value === 'object' && value !== null && Object.hasOwn(value, member);
    if (!hasMember) {
      const message = `The prompt of "${loopId}" uses {{${name}}}, which the input does not have.`;
      throw new LoopError('TEMPLATE_FAILED', message, { variable: name });
    }
    value = (value as { readonly [key: string]: Json })[member];
  }
  return value as Json;
}

function renderValue(value: Json): string {
  if (typeof value === 'string') return value;
  return value === null ? '' : JSON.stringify(value);
}
