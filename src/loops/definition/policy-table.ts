/**
 * Defines which policy keys apply to which form of loop. A key that would have no effect is refused when the definition
 * is registered. The guide to policies shows this table.
 */

import { isObject } from '../../base/own-property.js';
import type { JsonObject } from '../../protocol/json.js';
import type { PolicySpec } from '../../protocol/loop.js';
import { appendPointer, type DefinitionIssues } from './shape.js';

/** The form of the body of a loop. */
export type LoopForm = 'prompt' | 'tool' | 'agent' | 'steps' | 'code';

/** The forms as they appear in messages. */
export const loopFormNames: { readonly [form in LoopForm]: string } = {
  prompt: 'a prompt',
  tool: 'a tool',
  agent: 'an agent',
  steps: 'a composite of steps',
  code: 'a body in code',
};

interface PolicyRow {
  /** What the key applies to, by the form of the loop. The key is refused for forms that are not listed. */
  readonly appliesTo: { readonly [form in LoopForm]?: string };
  /** What to do if the key is refused. */
  readonly advice: string;
}

/** Rows by policy key, in the order of the layers, outermost first. */
export const policyTable: { readonly [key in keyof Required<PolicySpec>]: PolicyRow } = {
  routing: { appliesTo: { prompt: 'the request' }, advice: 'put it on a prompt' },
  approval: {
    appliesTo: { prompt: 'the request', tool: 'the tool' },
    advice: 'put it on the prompts and tools that it calls, or into the approvals of an agent',
  },
  filters: {
    appliesTo: { prompt: 'request and reply', tool: 'input and output' },
    advice: 'put it on the prompts and tools that it calls',
  },
  cache: {
    appliesTo: { prompt: 'the reply', tool: 'the output; not `once`', agent: 'each reply' },
    advice: 'put it on the prompts, tools and agents that it calls',
  },
  fallback: {
    appliesTo: { prompt: 'the request', agent: 'each request' },
    advice: 'put it on the prompt or the agent that asks the model',
  },
  retry: {
    appliesTo: { prompt: 'the request', tool: 'the tool; not `once`', agent: 'each request' },
    advice: 'put it on the prompts, tools and agents that it calls',
  },
  rateLimit: {
    appliesTo: { prompt: 'each attempt', tool: 'each attempt', agent: 'each attempt' },
    advice: 'put it on the prompts, tools and agents that it calls',
  },
  timeoutMs: {
    appliesTo: {
      prompt: 'each attempt',
      tool: 'each attempt',
      agent: 'each attempt',
      steps: 'the whole call',
      code: 'the whole call',
    },
    advice: 'put it on what it calls',
  },
};

/** Keys that repeat or reuse an effect. They do not apply to tools with the safety `once`. */
export const REPEATING_KEYS: ReadonlySet<string> = new Set(['retry', 'cache']);
const ONCE_REASON =
  'has no effect on a tool whose safety is "once", which is the default; if the tool may run again, declare "safety": "keyed", "idempotent" or "pure", else remove it';

/** Returns the form of a document; undefined if its kind is invalid. */
export function loopFormOf({ kind, composite }: JsonObject): LoopForm | undefined {
  if (kind === 'prompt' || kind === 'tool') return kind;
  if (kind !== 'composite') return undefined;
  return isObject(composite) && Object.hasOwn(composite, 'agent') ? 'agent' : 'steps';
}

/** Adds an issue for each policy key that would have no effect. */
export function checkPolicyApplies(document: JsonObject, form: LoopForm | undefined, issues: DefinitionIssues): void {
  const { policy, tool } = document;
  if (form === undefined || !isObject(policy)) return;
  const isOnce = form === 'tool' && (!isObject(tool) || (tool.safety ?? 'once') === 'once');
  for (const [key, { appliesTo, advice }] of Object.entries(policyTable)) {
    if (!Object.hasOwn(policy, key)) continue;
    const path = appendPointer('/policy', key);
    if (appliesTo[form] === undefined) issues.add(path, `has no effect on ${loopFormNames[form]}; ${advice}`);
    else if (isOnce && REPEATING_KEYS.has(key)) issues.add(path, ONCE_REASON);
  }
}
