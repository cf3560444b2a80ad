/** Checks the `agent` member of a composite. Whether its tools and its backend exist is checked when it is linked. */
import { isObject } from '../../base/own-property.js';
import { toolNameOf } from '../../views/tool-name.js';
import { checkBackendRef } from './bodies.js';
import { checkContextSkills } from './context-skills.js';
import { checkLoopId } from './loop-identity.js';
import {
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
  withSchema,
} from './shape.js';

const DAY_MS = 86_400_000;
const MAX_TOOLS = 1000;
const NO_UPPER_BOUND = Number.MAX_SAFE_INTEGER;
const checkApprovalPolicy = oneOf(['always_allow', 'ask', 'blocked']);

/**
 * Checks policies by tool name. The registered tools are not known here, but a name that no tool can have is an issue.
 */
const checkApprovals = withSchema(
  () => ({ type: 'object', additionalProperties: checkApprovalPolicy.schema() }),
  (value, path, issues) => {
    if (!isObject(value)) return issues.add(path, 'must be an object of tool names and policies');
    for (const [tool, policy] of Object.entries(value)) {
      const policyPath = appendPointer(path, tool);
      if (tool !== '*') checkLoopId(tool, policyPath, issues);
      checkApprovalPolicy(policy, policyPath, issues);
    }
  },
);

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
    mode: nonBlankText,
    approvals: checkApprovals,
    maxTokens: integerBetween(1, NO_UPPER_BOUND),
    temperature: numberBetween(0, 2),
    toolTimeoutMs: integerBetween(1, DAY_MS),
    contextSkills: checkContextSkills,
  },
});

/** Checks the specification of an agent. */
export const checkAgent: DefinitionCheck = withSchema(checkAgentShape.schema, (value, path, issues) => {
  checkAgentShape(value, path, issues);
  if (!isObject(value)) return;
  const { tools = [], handoffs = [] } = value;
  if (Array.isArray(tools) && Array.isArray(handoffs)) checkToolNames([...tools, ...handoffs], path, issues);
});

/**
 * Adds an issue for each tool whose name for models is that of another tool. A model identifies a tool by its name
 * only, so the two would share calls and approval policies.
 */
function checkToolNames(ids: readonly unknown[], path: string, issues: DefinitionIssues): void {
  const idsByName = new Map<string, string>();
  for (const id of ids) {
    if (typeof id !== 'string') continue;
    // guard: tool-names-compared-as-models-see-them
    const name = toolNameOf(id);
    const other = idsByName.get(name);
    idsByName.set(name, id);
    if (other === id) issues.add(appendPointer(path, 'tools'), `names ${quoteText(id)} twice`);
    // guard: tools-with-one-name-refused
    else if (other !== undefined) issues.add(appendPointer(path, 'tools'), sameNameReason(other, id, name));
  }
}

function sameNameReason(id: string, other: string, name: string): string {
  return `has ${quoteText(id)} and ${quoteText(other)}, which a model would both see as ${quoteText(name)}; rename one of them`;
}
