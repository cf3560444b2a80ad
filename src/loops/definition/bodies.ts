/** The shapes of a prompt, of a tool and of a reference to a backend. */
import { isObject } from '../../base/own-property.js';
import type { Json } from '../../protocol/json.js';
import {
  anyObject,
  anyText,
  appendPointer,
  type DefinitionCheck,
  type DefinitionIssues,
  integerBetween,
  listOf,
  nonEmptyText,
  numberBetween,
  objectOf,
  oneOf,
  quoteText,
  textMatching,
} from './shape.js';

export const checkBackendRef: DefinitionCheck = objectOf({
  required: { id: nonEmptyText },
  optional: { model: nonEmptyText, options: anyObject },
});

/** Whether it is a name, or names with dots between them. */
const isVariableName = (dotted: string): boolean =>
  dotted.split('.').every((name) => name !== '' && name.trim() === name && !/[{}"':\r\n]/.test(name));

/** What stands between the braces of each placeholder; undefined for one that is never closed. */
function placeholdersIn(template: string): (string | undefined)[] {
  const found: (string | undefined)[] = [];
  let open = template.indexOf('{{');
  while (open !== -1) {
    const close = template.indexOf('}}', open + 2);
    if (close === -1) return [...found, undefined];
    found.push(template.slice(open + 2, close).trim());
    open = template.indexOf('{{', close + 2);
  }
  return found;
}

function checkTemplate(template: string, variables: Json | undefined, path: string, flaws: DefinitionIssues): void {
  const declared = Array.isArray(variables) ? new Set<Json>(variables) : undefined;
  for (const name of placeholdersIn(template)) {
    if (flaws.isFull) return;
    if (name === undefined) flaws.add(path, 'has "{{" without "}}"');
    else if (!isVariableName(name))
      flaws.add(path, `has {{${name.slice(0, 60)}}}, which names no variable; write {{name}} or {{a.b}}`);
    else checkVariable(name, declared, path, flaws);
  }
}

function checkVariable(
  name: string,
  declared: ReadonlySet<Json> | undefined,
  path: string,
  flaws: DefinitionIssues,
): void {
  const first = name.split('.', 1)[0] ?? name;
  if (declared === undefined || declared.has(first)) return;
  const list = [...declared].slice(0, 20).join(', ') || 'none';
  flaws.add(path, `uses ${quoteText(first)}, which is not among its variables (${list})`);
}

const checkPromptShape = objectOf({
  required: { template: nonEmptyText },
  optional: {
    variables: listOf(nonEmptyText, 1000),
    systemPrompt: anyText,
    maxTokens: integerBetween(1, Number.MAX_SAFE_INTEGER),
    temperature: numberBetween(0, 2),
  },
});

export const checkPrompt: DefinitionCheck = (value, path, flaws) => {
  checkPromptShape(value, path, flaws);
  if (!isObject(value) || typeof value.template !== 'string') return;
  checkTemplate(value.template, value.variables, appendPointer(path, 'template'), flaws);
};

export const checkTool: DefinitionCheck = objectOf({
  required: {
    implementation: textMatching(
      'a scheme and a target, such as "builtin:echo" or "exec:./run.sh"',
      /^[a-z][a-z0-9+.-]*:\s*\S/,
    ),
  },
  optional: { config: anyObject, safety: oneOf(['pure', 'idempotent', 'keyed', 'once']) },
});
