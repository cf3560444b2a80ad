/** The shape of a policy. Every bound here keeps a definition from asking for what no run should do. */
import { backend } from './bodies.js';
import {
  anyFields,
  anyText,
  type Check,
  fields,
  isFields,
  listOf,
  numberIn,
  oneOf,
  pointer,
  quote,
  textLike,
  wholeIn,
} from './shape.js';

const DAY = 86_400_000;
const ENTRIES = 100;

const filter = fields({
  required: { pattern: textLike('a pattern of 1 to 1000 characters', /^.{1,1000}$/s) },
  optional: { action: oneOf(['refuse', 'redact']), replacement: anyText, reason: anyText },
});

const conditions: Check = (value, path, flaws) => {
  anyFields(value, path, flaws);
  if (!isFields(value)) return;
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

export const policy: Check = fields({
  optional: {
    routing: listOf(route, ENTRIES),
    fallback: listOf(backend, ENTRIES),
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
    filters: fields({ optional: { before: listOf(filter, ENTRIES), after: listOf(filter, ENTRIES) } }),
    approval: oneOf(['always_allow', 'ask', 'blocked']),
  },
});
