/** The shape of an agent. What it calls (its tools, its backend) is judged by whoever links it. */
import { isObject } from '../../base/own-property.js';
import { toolNameOf } from '../../views/tool-name.js';
import { backend } from './bodies.js';
import { loopId } from './identity.js';
import {
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
  wholeIn,
} from './shape.js';

const DAY = 86_400_000;
const TOOLS = 1000;
const ANY = Number.MAX_SAFE_INTEGER;
const policy = oneOf(['always_allow', 'ask', 'blocked']);

/** By the name of a tool; which of them there are is not known here, but a name that none can have is a slip. */
const approvals: Check = (value, path, flaws) => {
  if (!isObject(value)) return flaws.add(path, 'must be an object of tool names and policies');
  for (const [tool, said] of Object.entries(value)) {
    const place = pointer(path, tool);
    if (tool !== '*') loopId(tool, place, flaws);
    policy(said, place, flaws);
  }
};

const shape = fields({
  required: { backend, tools: listOf(loopId, TOOLS) },
  optional: {
    instructions: anyText,
    handoffs: listOf(loopId, TOOLS),
    maxRounds: wholeIn(1, 100_000),
    stop: fields({
      optional: { inputTokens: wholeIn(1, ANY), outputTokens: wholeIn(1, ANY), deadlineMs: wholeIn(1, 365 * DAY) },
    }),
    mode: text,
    approvals,
    maxTokens: wholeIn(1, ANY),
    temperature: numberIn(0, 2),
    toolTimeoutMs: wholeIn(1, DAY),
  },
});

export const agent: Check = (value, path, flaws) => {
  shape(value, path, flaws);
  if (!isObject(value)) return;
  const { tools = [], handoffs = [] } = value;
  if (Array.isArray(tools) && Array.isArray(handoffs)) checkNames([...tools, ...handoffs], path, flaws);
};

/** The model knows a tool by its name alone: two tools of one name would be one to it, and to the policies of both. */
function checkNames(ids: readonly unknown[], path: string, flaws: Flaws): void {
  const known = new Map<string, string>();
  for (const id of ids) {
    if (typeof id !== 'string') continue;
    // guard: tool-names-compared-as-models-see-them
    const name = toolNameOf(id);
    const other = known.get(name);
    known.set(name, id);
    if (other === id) flaws.add(pointer(path, 'tools'), `names ${quote(id)} twice`);
    // guard: tools-with-one-name-refused
    else if (other !== undefined) flaws.add(pointer(path, 'tools'), sameName(other, id, name));
  }
}

function sameName(id: string, other: string, name: string): string {
  return `has ${quote(id)} and ${quote(other)}, which a model would both know as ${quote(name)}; rename one of them`;
}
