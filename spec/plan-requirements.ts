// The requirements of plans and workflow files; see requirements.ts.

/** The text of each requirement of plans, by id. */
export const planRequirements = {
  'plan.code':
    'definePlan is pure data with inferred types: the same plan in TOML, JSON and code has one digest and one trace.',
  'plan.words':
    'An action is split into words before its placeholders are filled, so a value is part of exactly one word and is never expanded.',
  'plan.conditions':
    'A condition is a typed expression over the data of its workflow: it runs no code, is bounded, and is checked before the first step.',
  'plan.driver': 'A plan takes the same course however often its process crashes; only its steps are calls.',
  'plan.states': 'A state runs its entry action, its action, one transition and its exit action, in this order.',
  'plan.bounds': 'A plan that repeats itself stops at a limit, with the reason.',
  'plan.errors': 'A failed step ends the plan, is skipped, is replaced by a value, or continues at a named step.',
  'plan.retry': 'A failed step is attempted as often as its strategy says, and then replaced by its fallback.',
  'plan.retry.once': 'Retries that would repeat a tool with the safety once are refused when they are registered.',
  'plan.fanout': 'A fan-out runs at most its limit of branches at once, orders their results, and asks at its gates.',
  'plan.wait': 'A plan waits for a duration, a time or a signal; a signal that is late is an error.',
  'plan.choice': 'A choice is recorded, and a replay follows the record, whatever its condition would say now.',
  'plan.compile': 'Registering an invalid plan throws DEFINITION_INVALID and nothing else.',
  'plan.check':
    'What a plan reads, reaches and calls is checked against all loops before anything runs; a mistake has its line and column.',
  'plan.mermaid': 'The diagram of a loop is valid Mermaid, whatever texts its definition contains.',
  'plan.convert':
    'A plan can be converted between TOML and JSON and back without a change of its definition or digest.',
  'plan.files':
    'A workflow file becomes a loop whatever the order and the names of its parts; what it cannot express is refused with its line and column.',
} as const satisfies Record<string, string>;
