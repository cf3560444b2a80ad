/** Checks the `policy` member of a definition. The bounds refuse values that no loop can need. */
import { isObject } from '../../base/own-property.js';
import { checkBackendRef } from './bodies.js';
import {
  anyObject,
  anyText,
  appendPointer,
  type DefinitionCheck,
  integerBetween,
  nonEmptyListOf,
  numberBetween,
  objectOf,
  oneOf,
  quoteText,
  textMatching,
  withSchema,
} from './shape.js';

const DAY_MS = 86_400_000;
const MAX_ENTRIES = 100;

const checkFilterShape = objectOf({
  required: { pattern: textMatching('a pattern of 1 to 1000 characters', /^[\s\S]{1,1000}$/) },
  optional: { action: oneOf(['refuse', 'redact']), replacement: anyText, reason: anyText },
});

/** Checks a filter. A `reason` applies only to refusals, and a `replacement` only to redactions. */
const checkFilter = withSchema(checkFilterShape.schema, (value, path, issues) => {
  checkFilterShape(value, path, issues);
  if (!isObject(value)) return;
  const isRedacting = value.action === 'redact';
  if (isRedacting && value.reason !== undefined)
    issues.add(appendPointer(path, 'reason'), 'has no effect on a filter that redacts; it is for the action "refuse"');
  if (!isRedacting && value.replacement !== undefined)
    issues.add(appendPointer(path, 'replacement'), 'has no effect on a filter that refuses; set "action": "redact"');
});

const checkFiltersShape = objectOf({
  optional: { before: nonEmptyListOf(checkFilter, MAX_ENTRIES), after: nonEmptyListOf(checkFilter, MAX_ENTRIES) },
});

const checkFilters = withSchema(
  () => ({ ...checkFiltersShape.schema(), minProperties: 1 }),
  (value, path, issues) => {
    checkFiltersShape(value, path, issues);
    if (isObject(value) && Object.keys(value).length === 0)
      issues.add(path, 'is empty, and has no effect; name filters in "before" or "after", or remove it');
  },
);

const checkConditions = withSchema(
  () => ({ type: 'object', propertyNames: { pattern: '^\\$' } }),
  (value, path, issues) => {
    anyObject(value, path, issues);
    if (!isObject(value)) return;
    for (const key of Object.keys(value)) {
      if (!key.startsWith('$'))
        issues.add(appendPointer(path, key), `must be a path that starts with $, not ${quoteText(key)}`);
    }
  },
);

const checkRoute = objectOf({
  required: {
    when: objectOf({
      optional: { promptLengthOver: integerBetween(0, Number.MAX_SAFE_INTEGER), input: checkConditions },
    }),
    backend: checkBackendRef,
  },
});

const checkRouteList = nonEmptyListOf(checkRoute, MAX_ENTRIES);

/** Checks routes. Refuses a route that follows one without conditions, because it is never taken. */
const checkRouting = withSchema(checkRouteList.schema, (value, path, issues) => {
  checkRouteList(value, path, issues);
  if (!Array.isArray(value)) return;
  const unconditional = value.findIndex(
    (item) => isObject(item) && isObject(item.when) && Object.keys(item.when).length === 0,
  );
  if (unconditional === -1 || unconditional === value.length - 1) return;
  issues.add(
    appendPointer(path, unconditional + 1),
    `is never taken: the route before it, ${appendPointer(path, unconditional)}, always holds`,
  );
});

/** Checks a policy. */
export const checkPolicy: DefinitionCheck = objectOf({
  optional: {
    routing: checkRouting,
    fallback: nonEmptyListOf(checkBackendRef, MAX_ENTRIES),
    retry: objectOf({
      required: { attempts: integerBetween(1, 20) },
      optional: {
        backoffMs: integerBetween(0, DAY_MS),
        factor: numberBetween(1, 10),
        maxBackoffMs: integerBetween(0, DAY_MS),
        jitter: numberBetween(0, 1),
      },
    }),
    timeoutMs: integerBetween(1, DAY_MS),
    rateLimit: objectOf({
      required: {
        requests: integerBetween(1, Number.MAX_SAFE_INTEGER),
        perMs: integerBetween(1, Number.MAX_SAFE_INTEGER),
      },
    }),
    cache: objectOf({ optional: { ttlMs: integerBetween(1, Number.MAX_SAFE_INTEGER) } }),
    filters: checkFilters,
    approval: oneOf(['always_allow', 'ask', 'blocked']),
  },
});
