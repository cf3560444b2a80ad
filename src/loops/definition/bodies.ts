/** Checks the bodies of prompts and tools, and references to backends. */
import { isObject } from '../../base/own-property.js';
import type { Json } from '../../protocol/json.js';
import { checkContextSkills } from './context-skills.js';
import {
  anyObject,
  anyText,
  appendPointer,
  type DefinitionCheck,
  type DefinitionIssues,
  integerBetween,
  listOf,
  nonBlankText,
  numberBetween,
  objectOf,
  oneOf,
  quoteText,
  textMatching,
  withSchema,
} from './shape.js';

/** Checks a reference to a backend. */
export const checkBackendRef: DefinitionCheck = objectOf({
  required: { id: nonBlankText },
  optional: { model: nonBlankText, options: anyObject },
});

/** True for a name, or for names separated by dots. */
const isVariableName = (dotted: string): boolean =>
  dotted.split('.').every((name) => name !== '' && name.trim() === name && !/[{}"':\r\n]/.test(name));

/** Returns the content of each `{{placeholder}}`; undefined for one without closing braces. */
function placeholdersIn(template: string): (string | undefined)[] {
  const placeholders: (string | undefined)[] = [];
  let open = template.indexOf('{{');
  while (open !== -1) {
    const close = template.indexOf('}}', open + 2);
    if (close === -1) return [...placeholders, undefined];
    placeholders.push(template.slice(open + 2, close).trim());
    open = template.indexOf('{{', close + 2);
  }
  return placeholders;
}

function checkTemplate(template: string, variables: Json | undefined, path: string, issues: DefinitionIssues): void {
  const declared = Array.isArray(variables) ? new Set<Json>(variables) : undefined;
  for (const name of placeholdersIn(template)) {
    if (issues.isFull) return;
    if (name === undefined) issues.add(path, 'has "{{" without "}}"');
    else if (!isVariableName(name))
      issues.add(path, `has {{${name.slice(0, 60)}}}, which is not a variable name; write {{name}} or {{a.b}}`);
    else checkVariable(name, declared, path, issues);
  }
}

function checkVariable(
  name: string,
  declared: ReadonlySet<Json> | undefined,
  path: string,
  issues: DefinitionIssues,
): void {
  const first = name.split('.', 1)[0] ?? name;
  if (declared === undefined || declared.has(first)) return;
  const list = [...declared].slice(0, 20).join(', ') || 'none';
  issues.add(path, `uses ${quoteText(first)}, which is not among its variables (${list})`);
}

const checkPromptShape = objectOf({
  required: { template: nonBlankText },
  optional: {
    variables: listOf(nonBlankText, 1000),
    systemPrompt: anyText,
    maxTokens: integerBetween(1, Number.MAX_SAFE_INTEGER),
    temperature: numberBetween(0, 2),
    contextSkills: checkContextSkills,
  },
});

/** Checks the body of a prompt, including the placeholders of its template. */
export const checkPrompt: DefinitionCheck = withSchema(checkPromptShape.schema, (value, path, issues) => {
  checkPromptShape(value, path, issues);
  if (!isObject(value) || typeof value.template !== 'string') return;
  checkTemplate(value.template, value.variables, appendPointer(path, 'template'), issues);
});

/** Checks the body of a tool. */
export const checkTool: DefinitionCheck = objectOf({
  required: {
    implementation: textMatching(
      'a scheme and a target, such as "builtin:echo" or "exec:./run.sh"',
      /^[a-z][a-z0-9+.-]*:\s*\S/,
    ),
  },
  optional: {
    config: anyObject,
    safety: oneOf(['pure', 'idempotent', 'keyed', 'once']),
    scopes: listOf(nonBlankText, 100),
  },
});
