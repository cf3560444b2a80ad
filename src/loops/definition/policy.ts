/** The shape of a policy. Every bound here keeps a definition from asking for what no run should do. */
import { isObject } from '../../base/own-property.js';
import { backend } from './bodies.js';
import {
  anyFields,
  anyText,
  type Check,
  fields,
  numberIn,
  oneOf,
  pointer,
  quote,
  someOf,
  textLike,
  wholeIn,
} from './shape.js';

const DAY = 86_400_000;
const ENTRIES = 100;

const filterShape = fields({
  required: { pattern: textLike('a pattern of 1 to 1000 characters', /^.{1,1000}$/s) },
  optional: { action: oneOf(['refuse', 'redact']), replacement: anyText, reason: anyText },
});

/** What is replaced needs no reason, and what is refused no replacement. */
const filter: Check = (value, path, flaws) => {
  filterShape(value, path, flaws);
  if (!isObject(value)) return;
  const isRedacting = value.action === 'redact';
  if (isRedacting && value.reason !== undefined)
    flaws.add(pointer(path, 'reason'), 'has no effect on a filter that redacts; it is for the action "refuse"');
  if (!isRedacting && value.replacement !== undefined)
    flaws.add(pointer(path, 'replacement'), 'has no effect on a filter that refuses; set "action": "redact"');
};

const filtersShape = fields({ optional: { before: someOf(filter, ENTRIES), after: someOf(filter, ENTRIES) } });

const filters: Check = (value, path, flaws) => {
  filtersShape(value, path, flaws);
  if (isObject(value) && Object.keys(value).length === 0)
    flaws.add(path, 'is empty, and has no effect; name filters in "before" or "after", or remove it');
};

const conditions: Check = (value, path, flaws) => {
  anyFields(value, path, flaws);
  if (!isObject(value)) return;
  for (const key of Object.keys(value)) {
    if (!key.startsWith('$')) flaws.add(pointer(path, key), `must be a path that starts with $, not ${quote(key)}`);
  }
};

const route = fields({
  required: {
    when: fields({ optional: { promptLengthOver: wholeIn(0, Number.MAX_SAFE_INTEGER), input: conditions } }),
    backend,
  },
});

const routes = someOf(route, ENTRIES);

/** Routes behind one that always holds are never taken. */
const routing: Check = (value, path, flaws) => {
  routes(value, path, flaws);
  if (!Array.isArray(value)) return;
  const always = value.findIndex(
    (item) => isObject(item) && isObject(item.when) && Object.keys(item.when).length === 0,
  );
  if (always === -1 || always === value.length - 1) return;
  flaws.add(pointer(path, always + 1), `is never taken: the route before it, ${pointer(path, always)}, always holds`);
};

export const policy: Check = fields({
  optional: {
    routing,
    fallback: someOf(backend, ENTRIES),
    retry: fields({
      required: { attempts: wholeIn(1, 20) },
      optional: {
        backoffMs: wholeIn(0, DAY),
        factor: numberIn(1, 10),
        maxBackoffMs: wholeIn(0, DAY),
        jitter: numberIn(0, 1),
      },
    }),
    timeoutMs: wholeIn(1, DAY),
    rateLimit: fields({
      required: { requests: wholeIn(1, Number.MAX_SAFE_INTEGER), perMs: wholeIn(1, Number.MAX_SAFE_INTEGER) },
    }),
    cache: fields({ optional: { ttlMs: wholeIn(1, Number.MAX_SAFE_INTEGER) } }),
    filters,
    approval: oneOf(['always_allow', 'ask', 'blocked']),
  },
});
