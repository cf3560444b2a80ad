/** The JSON Schemas of a harness file. Unknown members are refused, so that a misspelt expectation never passes. */
import type { HostedStopReason } from '../../protocol/hosted-loop.js';
import type { JsonSchema } from '../../protocol/loop.js';
import type { ReceiptEffectState, ReceiptState } from '../../protocol/receipt.js';
import type { CaseStatus } from './harness-case.js';

/** The members of a record, as a list that the compiler checks against the type. */
const namesOf = <T extends string>(names: Readonly<Record<T, true>>): string[] => Object.keys(names);

const STATUSES = namesOf<CaseStatus>({ ok: true, error: true, paused: true, stopped: true, cancelled: true });
const RECEIPT_STATES = namesOf<ReceiptState>({
  ok: true,
  error: true,
  cancelled: true,
  stopped: true,
  paused: true,
  refused: true,
  closed: true,
});
const EFFECT_STATES = namesOf<ReceiptEffectState>({ done: true, failed: true, unknown: true, denied: true });
const STOP_REASONS = namesOf<HostedStopReason>({
  max_turns: true,
  budget: true,
  deadline: true,
  approval: true,
  confidence: true,
  terminal: true,
  no_progress: true,
  stale_projection: true,
  missing_receipt: true,
  turn_failed: true,
  refused: true,
  stopped_by: true,
});

const TEXT: JsonSchema = { type: 'string', minLength: 1, maxLength: 4000 };
const FLAG: JsonSchema = { type: 'boolean' };
const COUNT: JsonSchema = { type: 'integer', minimum: 0 };
const NAMES: JsonSchema = { type: 'array', items: TEXT };
const ANY: JsonSchema = true;

/** An object with these members and no others. */
function objectOf(required: readonly string[], properties: Readonly<Record<string, JsonSchema>>): JsonSchema {
  return { type: 'object', required: [...required], properties, additionalProperties: false } as JsonSchema;
}

const verdict = objectOf([], { valid: FLAG, complete: { enum: [true, false, 'unknown'] } });

const effect = objectOf(['name', 'state'], { name: TEXT, state: { enum: EFFECT_STATES } });

const receipt = objectOf(['state'], {
  state: { enum: RECEIPT_STATES },
  final: FLAG,
  effects: { type: ['integer', 'array'], minimum: 0, items: effect },
  context: NAMES,
  chain: COUNT,
  approvals: COUNT,
});

const turnExpectation = objectOf(['status'], {
  ...{ status: { enum: STATUSES }, code: TEXT, reason: TEXT },
  ...{ output: ANY, outputContains: ANY, receipt, toolCalls: NAMES, verdict },
});

const hostedExpectation = objectOf(['reason'], {
  ...{ reason: { enum: STOP_REASONS }, turns: COUNT, chain: COUNT },
  ...{ output: ANY, outputContains: ANY, toolCalls: NAMES, verdict },
});

const answer = objectOf(['tool', 'approved'], { tool: TEXT, approved: FLAG, by: TEXT, reason: TEXT });

const signal = objectOf(['name'], { name: TEXT, payload: ANY });

const sharedMembers: Readonly<Record<string, JsonSchema>> = {
  name: { type: 'string', pattern: '^[A-Za-z0-9][A-Za-z0-9_.-]{0,99}$' },
  script: { type: ['array', 'string'], minLength: 1 },
  approvals: { type: 'array', items: answer },
  signals: { type: 'array', items: signal },
  now: TEXT,
};

/** The schema of a case with one turn. */
export const turnCaseSchema = objectOf(['name', 'loop', 'expect'], {
  ...sharedMembers,
  ...{ loop: TEXT, input: ANY, grant: { type: ['object', 'string'], minLength: 1 }, expect: turnExpectation },
});

/** The schema of a case with a hosted loop. */
export const hostedCaseSchema = objectOf(['name', 'host', 'expect'], {
  ...sharedMembers,
  ...{ host: TEXT, expect: hostedExpectation },
});

/** The schema of a harness file without its cases. */
export const harnessSchema = objectOf(['cases'], {
  $schema: TEXT,
  loops: TEXT,
  cases: { type: 'array', minItems: 1, maxItems: 400, items: { type: 'object' } },
});
