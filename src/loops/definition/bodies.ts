/** The shapes of a prompt, of a tool and of a reference to a backend. */
import { isObject } from '../../base/own-property.js';
import type { Json } from '../../protocol/json.js';
import {
  anyFields,
  anyText,
  type Check,
  type Flaws,
  fields,
  listOf,
  numberIn,
  oneOf,
  pointer,
  quote,
  text,
  textLike,
  wholeIn,
} from './shape.js';

export const backend: Check = fields({ required: { id: text }, optional: { model: text, options: anyFields } });

/** Whether it is a name, or names with dots between them. */
const namesVariable = (dotted: string): boolean =>
  dotted.split('.').every((name) => name !== '' && name.trim() === name && !/[{}"':\r\n]/.test(name));

/** What stands between the braces of each placeholder; undefined for one that is never closed. */
function placeholders(template: string): (string | undefined)[] {
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

function checkTemplate(template: string, variables: Json | undefined, path: string, flaws: Flaws): void {
  const declared = Array.isArray(variables) ? new Set<Json>(variables) : undefined;
  for (const name of placeholders(template)) {
    if (flaws.full) return;
    if (name === undefined) flaws.add(path, 'has "{{" without "}}"');
    else if (!namesVariable(name))
      flaws.add(path, `has {{${name.slice(0, 60)}}}, which names no variable; write {{name}} or {{a.b}}`);
    else checkVariable(name, declared, path, flaws);
  }
}

function checkVariable(name: string, declared: ReadonlySet<Json> | undefined, path: string, flaws: Flaws): void {
  const first = name.split('.', 1)[0] ?? name;
  if (declared === undefined || declared.has(first)) return;
  const list = [...declared].slice(0, 20).join(', ') || 'none';
  flaws.add(path, `uses ${quote(first)}, which is not among its variables (${list})`);
}

const promptShape = fields({
  required: { template: text },
  optional: {
    variables: listOf(text, 1000),
    systemPrompt: anyText,
    maxTokens: wholeIn(1, Number.MAX_SAFE_INTEGER),
    temperature: numberIn(0, 2),
  },
});

export const prompt: Check = (value, path, flaws) => {
  promptShape(value, path, flaws);
  if (!isObject(value) || typeof value.template !== 'string') return;
  checkTemplate(value.template, value.variables, pointer(path, 'template'), flaws);
};

export const tool: Check = fields({
  required: {
    implementation: textLike(
      'a scheme and a target, such as "builtin:echo" or "exec:./run.sh"',
      /^[a-z][a-z0-9+.-]*:\s*\S/,
    ),
  },
  optional: { config: anyFields, safety: oneOf(['pure', 'idempotent', 'keyed', 'once']) },
});
