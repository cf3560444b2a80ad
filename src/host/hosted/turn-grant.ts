/**
 * The grants in a hosted loop document: the grant of all turns together, and the grants that narrow it for one turn or a
 * handoff. Here they are checked by themselves; whether one permits more than another is checked when a turn starts.
 */
import { LoopError } from '../../base/errors.js';
import { isObject } from '../../base/own-property.js';
import { type DefinitionCheck, type DefinitionIssues, withSchema } from '../../loops/definition/shape.js';
import { parseGrant } from '../../policy/grant.js';
import { completeTurnGrant } from '../../policy/narrow-grant.js';
import type { Grant } from '../../protocol/grant.js';
import type { TurnGrant } from '../../protocol/hosted-loop.js';
import type { Json, JsonObject } from '../../protocol/json.js';
import { grantSchema } from './grant-schema.js';

/** Checks the grant of a hosted loop. */
export const checkGrant: DefinitionCheck = withSchema(grantSchema, (value, path, issues) => {
  addGrantIssue(value, path, issues);
});

/** Checks the members of the grant of one turn that need no knowledge of the grant of the loop. */
export const checkTurnGrant: DefinitionCheck = withSchema(
  () => {
    const { required: _, ...schema } = grantSchema();
    const { id: __, ...properties } = schema.properties as JsonObject;
    return { ...schema, properties };
  },
  (value, path, issues) => {
    if (!isObject(value)) return issues.add(path, 'must be an object');
    // guard: turn-grant-has-no-id
    if (Object.hasOwn(value, 'id'))
      issues.add(`${path}/id`, 'is not permitted here: all turns share the budget of the grant of the loop; remove it');
  },
);

/** Adds the issues of the grants of turns, each completed with the tools that it inherits. */
export function addTurnGrantIssues(document: JsonObject, issues: DefinitionIssues): void {
  const { grant, turn, handoffs } = document;
  // Without a valid grant of the loop, it is not known what they inherit.
  if (!isObject(grant) || issues.list.some(({ path }) => path === '/grant' || path.startsWith('/grant/'))) return;
  const narrowed: readonly (readonly [path: string, turnGrant: Json | undefined])[] = [
    ['/turn/grant', isObject(turn) ? turn.grant : undefined],
    ...(Array.isArray(handoffs) ? handoffs : []).map(
      (handoff: Json, index) => [`/handoffs/${index}/grant`, isObject(handoff) ? handoff.grant : undefined] as const,
    ),
  ];
  for (const [path, turnGrant] of narrowed) {
    if (!isObject(turnGrant) || Object.hasOwn(turnGrant, 'id')) continue;
    // guard: turn-grant-checked
    addGrantIssue(completeTurnGrant(turnGrant as TurnGrant, grant as unknown as Grant), path, issues);
  }
}

/** Adds what is wrong with a grant, with its path in the document. */
function addGrantIssue(grant: unknown, path: string, issues: DefinitionIssues): void {
  try {
    // A hosted loop document is the operator's, so its grant may permit every tool.
    parseGrant(grant, { isOperators: true });
  } catch (thrown) {
    if (!(thrown instanceof LoopError)) throw thrown;
    const { path: inner = '', reason = thrown.message } = (thrown.data ?? {}) as { path?: string; reason?: string };
    issues.add(`${path}${inner}`, reason);
  }
}
