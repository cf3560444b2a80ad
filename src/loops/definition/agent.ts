/** The shape of an agent. What it calls (its tools, its backend) is judged by whoever links it. */
import { isObject } from '../../base/own-property.js';
import { toolNameOf } from '../../views/tool-name.js';
import { checkBackendRef } from './bodies.js';
import { checkLoopId } from './loop-identity.js';
import {
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
} from './shape.js';

const DAY_MS = 86_400_000;
const MAX_TOOLS = 1000;
const NO_UPPER_BOUND = Number.MAX_SAFE_INTEGER;
const checkApprovalPolicy = oneOf(['always_allow', 'ask', 'blocked']);

/** By the name of a tool; which of them there are is not known here, but a name that none can have is a slip. */
const checkApprovals: DefinitionCheck = (value, path, flaws) => {
  if (!isObject(value)) return flaws.add(path, 'must be an object of tool names and policies');
  for (const [tool, said] of Object.entries(value)) {
    const place = appendPointer(path, tool);
    if (tool !== '*') checkLoopId(tool, place, flaws);
    checkApprovalPolicy(said, place, flaws);
  }
};

const checkAgentShape = objectOf({
  required: { backend: checkBackendRef, tools: listOf(checkLoopId, MAX_TOOLS) },
  optional: {
    instructions: anyText,
    handoffs: listOf(checkLoopId, MAX_TOOLS),
    maxRounds: integerBetween(1, 100_000),
    stop: objectOf({
      optional: {
        inputTokens: integerBetween(1, NO_UPPER_BOUND),
        outputTokens: integerBetween(1, NO_UPPER_BOUND),
        deadlineMs: integerBetween(1, 365 * DAY_MS),
      },
    }),
    mode: nonEmptyText,
    approvals: checkApprovals,
    maxTokens: integerBetween(1, NO_UPPER_BOUND),
    temperature: numberBetween(0, 2),
    toolTimeoutMs: integerBetween(1, DAY_MS),
  },
});

export const checkAgent: DefinitionCheck = (value, path, flaws) => {
  checkAgentShape(value, path, flaws);
  if (!isObject(value)) return;
  const { tools = [], handoffs = [] } = value;
  if (Array.isArray(tools) && Array.isArray(handoffs)) checkToolNames([...tools, ...handoffs], path, flaws);
};

/** The model knows a tool by its name alone: two tools of one name would be one to it, and to the policies of both. */
function checkToolNames(ids: readonly unknown[], path: string, flaws: DefinitionIssues): void {
  const known = new Map<string, string>();
  for (const id of ids) {
    if (typeof id !== 'string') continue;
    // guard: tool-names-compared-as-models-see-them
    const name = toolNameOf(id);
    const other = known.get(name);
    known.set(name, id);
    if (other === id) flaws.add(appendPointer(path, 'tools'), `names ${quoteText(id)} twice`);
    // guard: tools-with-one-name-refused
    else if (other !== undefined) flaws.add(appendPointer(path, 'tools'), sameNameReason(other, id, name));
  }
}

function sameNameReason(id: string, other: string, name: string): string {
  return `has ${quoteText(id)} and ${quoteText(other)}, which a model would both know as ${quoteText(name)}; rename one of them`;
}
