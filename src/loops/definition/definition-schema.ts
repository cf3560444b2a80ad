/**
 * The JSON Schema of definition files, for editors. It is generated from the checks of the parser, so that both accept
 * the same members. What JSON Schema cannot express, such as the ids of other loops, only the parser checks.
 */
import type { JsonObject } from '../../protocol/json.js';
import type { LoopKind } from '../../protocol/loop.js';
import { bodyChecks, LOOP_KINDS, optionalMembers, requiredMembers } from './definition.js';
import { planStepSchema } from './plan-steps.js';
import { type LoopForm, policyTable, REPEATING_KEYS } from './policy-table.js';
import { conditionalSchema, membersSchema } from './shape.js';

/** Returns the JSON Schema (draft 2020-12) of a definition. */
export function definitionSchema(): JsonObject {
  const { properties, ...members } = membersSchema(requiredMembers, { ...optionalMembers, ...bodyChecks });
  return {
    $schema: 'https://json-schema.org/draft/2020-12/schema',
    title: 'Rondo loop',
    description: 'The definition of a loop.',
    ...members,
    properties: { $schema: { description: 'The JSON Schema of this file.' }, ...(properties as JsonObject) },
    allOf: [
      ...LOOP_KINDS.map(bodyRule),
      ...formRules.map(([form, condition]) => policyRule(form, condition)),
      onceRule(),
    ],
    $defs: { planStep: planStepSchema() },
  };
}

/** Returns the rule that a loop of this kind has the body of this kind and no other. */
function bodyRule(kind: LoopKind): JsonObject {
  const others = LOOP_KINDS.filter((other) => other !== kind).map((other) => [other, false] as const);
  return conditionalSchema(kindIs(kind), { required: [kind], properties: Object.fromEntries(others) });
}

const kindIs = (kind: LoopKind, more: JsonObject = {}): JsonObject => ({
  required: ['kind'],
  properties: { kind: { const: kind }, ...more },
});

/** The forms that a document can have, and the schema by which each is recognised. */
const formRules: readonly (readonly [form: LoopForm, condition: JsonObject])[] = [
  ['prompt', kindIs('prompt')],
  ['tool', kindIs('tool')],
  ['agent', { ...kindIs('composite', { composite: { required: ['agent'] } }), required: ['kind', 'composite'] }],
  ['steps', kindIs('composite', { composite: { not: { required: ['agent'] } } })],
];

/** Returns the rule that the policy of this form has no key that would have no effect. */
function policyRule(form: LoopForm, condition: JsonObject): JsonObject {
  const refused = Object.entries(policyTable).filter(([, { appliesTo }]) => appliesTo[form] === undefined);
  return refusePolicyKeys(
    condition,
    refused.map(([key]) => key),
  );
}

/** Returns the rule that a tool with the safety `once`, which is the default, is neither retried nor cached. */
function onceRule(): JsonObject {
  const isOnce = { properties: { safety: { const: 'once' } } };
  return refusePolicyKeys(kindIs('tool', { tool: isOnce }), [...REPEATING_KEYS]);
}

function refusePolicyKeys(condition: JsonObject, keys: readonly string[]): JsonObject {
  const policy = { properties: Object.fromEntries(keys.map((key) => [key, false] as const)) };
  return conditionalSchema(condition, { properties: { policy } });
}
