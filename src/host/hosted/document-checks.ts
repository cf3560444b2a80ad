/**
 * Checks of the parts of a hosted loop document, except grants: mappings of the projection, paths into the output of a
 * turn, stop conditions, schedules and signals.
 */
import { LoopError } from '../../base/errors.js';
import { ISO_TIME_DESCRIPTION, ISO_TIME_PATTERN, parseIsoTime } from '../../base/iso-time.js';
import { nearestWord } from '../../base/nearest-word.js';
import { isObject } from '../../base/own-property.js';
import { compileJsonPath } from '../../json/path.js';
import { findUnknownKeyword } from '../../json/schema/unknown-keyword.js';
import { compileSchema } from '../../json/schema.js';
import { mappingSchema, mappingShape } from '../../loops/definition/mapping-shape.js';
import {
  anyValue,
  appendPointer,
  checkThat,
  type DefinitionCheck,
  type DefinitionIssues,
  didYouMean,
  integerBetween,
  objectOf,
  oneOf,
  quoteText,
  textMatching,
  withSchema,
} from '../../loops/definition/shape.js';
import { pathPrefixesOf } from '../../loops/mapping.js';
import type {
  ConfidenceStop,
  HostedProjection,
  HostedSignal,
  SignalVerification,
  StopPolicy,
  TerminalStop,
  TurnRetry,
} from '../../protocol/hosted-loop.js';
import type { Json, JsonObject } from '../../protocol/json.js';
import type { JsonSchema } from '../../protocol/loop.js';
import { findScheduleProblem } from './schedule.js';

/** One check for each member of a type, which the compiler compares with the type. */
export type ChecksOf<T> = { readonly [M in keyof Required<T>]: DefinitionCheck };

const HOSTED_ID = /^[A-Za-z0-9_-][A-Za-z0-9_.-]{0,59}$/;
const SIGNAL_NAME = /^[A-Za-z0-9_.-]{1,64}$/;
const SECRET_REFERENCE = /^env:[A-Za-z_][A-Za-z0-9_]{0,127}$/;
const MAX_SIGNALS = 100;
const MAX_WINDOW_MS = 24 * 60 * 60 * 1000;
const MAX_COUNT = Number.MAX_SAFE_INTEGER;
/** The maximum of `stop.maxTurns`: a loop that may have more turns is not bounded. */
const MAX_TURNS = 1_000_000;

/** Checks the id of a hosted loop. */
export const checkHostedId = textMatching(
  'an id of 1 to 60 letters, digits or _ . -, not beginning with a dot',
  HOSTED_ID,
);

const projectionMembers = {
  loop: true,
  turn: true,
  head: true,
  input: true,
  last: true,
  signal: true,
  handoff: true,
  used: true,
} as const satisfies Record<keyof Required<HostedProjection>, true>;

/** Checks a mapping of the projection to the input of a turn. */
export const checkProjectionMapping = withSchema(mappingSchema, (value, path, issues) => {
  const issuesBefore = issues.count;
  mappingShape(value, path, issues);
  if (issues.count > issuesBefore) return;
  if (typeof value === 'string') return addMappingIssue(value, path, issues);
  for (const [member, text] of Object.entries(value as { readonly [member: string]: string }))
    addMappingIssue(text, appendPointer(path, member), issues);
});

/** Adds what is wrong with one text of a mapping: a malformed path, or one to a member that no projection has. */
function addMappingIssue(text: string, path: string, issues: DefinitionIssues): void {
  try {
    for (const [first] of pathPrefixesOf(text, path).filter((prefix) => prefix !== undefined)) {
      // guard: projection-mapping-readable
      if (first === undefined || Object.hasOwn(projectionMembers, first)) continue;
      const known = Object.keys(projectionMembers);
      const nearest = didYouMean(nearestWord(String(first), known));
      issues.add(path, `reads ${quoteText(String(first))}; a projection has ${known.join(', ')}${nearest}`);
    }
  } catch (thrown) {
    issues.add(path, `is not a usable JSONPath: ${reasonOf(thrown)}`);
  }
}

/** Checks a path into the output of a turn, which must select at most one value. */
const checkOutputPath = withSchema(
  () => ({ type: 'string', pattern: '^\\$' }),
  (value, path, issues) => {
    if (typeof value !== 'string') return issues.add(path, 'must be a JSONPath in quotes, such as $.score');
    try {
      // guard: output-path-is-singular
      if (compileJsonPath(value, path).singularSegments !== undefined) return;
      issues.add(path, 'may select several values; use only names and indexes, such as $.score or $.items[0].score');
    } catch (thrown) {
      issues.add(path, `is not a usable JSONPath: ${reasonOf(thrown)}`);
    }
  },
);

/** Checks a condition on a value in the output of a turn. */
export const checkTerminal = objectOf({
  required: { path: checkOutputPath, equals: anyValue } satisfies ChecksOf<TerminalStop>,
});

const checkConfidence = objectOf({
  required: {
    path: checkOutputPath,
    atLeast: checkThat('a number', { type: 'number' }, (value) => typeof value === 'number'),
  } satisfies ChecksOf<ConfidenceStop>,
});

const checkTime = checkThat(
  ISO_TIME_DESCRIPTION,
  { type: 'string', pattern: ISO_TIME_PATTERN.source },
  (value) => parseIsoTime(value) !== undefined,
);

const MISSING_MAX_TURNS = 'is missing: a hosted loop always has a maximum of turns';

/** The reason for which a document without a stop policy is refused. */
export const MISSING_STOP = `${MISSING_MAX_TURNS}; { maxTurns = 10 } permits ten`;

const optionalStops = {
  deadline: checkTime,
  approval: oneOf(['denied', 'pending', 'ignore'] satisfies readonly StopPolicy['approval'][]),
  confidence: checkConfidence,
  terminal: checkTerminal,
  noProgress: integerBetween(1, MAX_COUNT),
} as const satisfies Omit<ChecksOf<StopPolicy>, 'maxTurns'>;

// guard: max-turns-bounded
const checkMaxTurns = integerBetween(1, MAX_TURNS);

/** Checks the stop policy. */
export const checkStop = objectOf({
  // guard: max-turns-required
  required: { maxTurns: checkMaxTurns },
  optional: optionalStops,
  missing: { maxTurns: MISSING_MAX_TURNS },
});

/** Checks how often failed turns are repeated. */
export const checkRetry = objectOf({
  required: { maxFailures: integerBetween(1, MAX_COUNT) },
  optional: { delayMs: integerBetween(0, MAX_COUNT) } satisfies Omit<ChecksOf<TurnRetry>, 'maxFailures'>,
});

const scheduleShapes = {
  cron: objectOf({
    required: { cron: textMatching('a cron expression', /\S/), zone: textMatching('a time zone', /\S/) },
    missing: { zone: 'is missing: the time zone of cron, such as zone = "Europe/Berlin" or zone = "UTC"' },
  }),
  everyMs: objectOf({ required: { everyMs: integerBetween(1, MAX_COUNT) } }),
  delayMs: objectOf({ required: { delayMs: integerBetween(0, MAX_COUNT) } }),
} as const;

const scheduleMembers = objectOf({
  optional: { cron: anyValue, zone: anyValue, everyMs: anyValue, delayMs: anyValue },
});

type ScheduleKind = keyof typeof scheduleShapes;

/** Returns the kind of a schedule; undefined if it has the members of none or of several. */
export function scheduleKindOf(schedule: Json | undefined): ScheduleKind | undefined {
  const kinds = isObject(schedule)
    ? (Object.keys(scheduleShapes) as ScheduleKind[]).filter((kind) => Object.hasOwn(schedule, kind))
    : [];
  return kinds.length === 1 ? kinds[0] : undefined;
}

/** Checks when turns are due. */
export const checkSchedule = withSchema(
  () => ({ anyOf: Object.values(scheduleShapes).map((shape) => shape.schema()) }),
  (value, path, issues) => {
    const issuesBefore = issues.count;
    const kind = scheduleKindOf(value);
    (kind === undefined ? scheduleMembers : scheduleShapes[kind])(value, path, issues);
    if (issues.count > issuesBefore) return;
    if (kind === undefined)
      return issues.add(path, 'must have cron with zone, or everyMs, or delayMs, and not several');
    const problem = findScheduleProblem(value);
    if (problem === undefined) return;
    const [member = '', ...reason] = problem.split(': ');
    issues.add(member === '' ? path : `${path}/${member.slice(1)}`, reason.join(': '));
  },
);

/** Checks a JSON Schema. An unknown keyword is refused: it may be a misspelt one, and would permit too much. */
const checkSchema = withSchema(
  () => ({ type: ['object', 'boolean'] }),
  (value, path, issues) => {
    try {
      compileSchema(value, '');
      const keyword = findUnknownKeyword(value as JsonSchema);
      // guard: unknown-keyword-of-signals-refused
      if (keyword !== undefined)
        issues.add(path, `is not a usable JSON Schema: there is no keyword ${quoteText(keyword)}`);
    } catch (thrown) {
      issues.add(`${path}${pathOf(thrown)}`, `is not a usable JSON Schema: ${reasonOf(thrown)}`);
    }
  },
);

const checkVerification = objectOf({
  required: {
    method: oneOf(['hmac-sha256'] satisfies readonly SignalVerification['method'][]),
    secret: textMatching('env: and the name of an environment variable, such as env:WEBHOOK_SECRET', SECRET_REFERENCE),
  },
  optional: { windowMs: integerBetween(1, MAX_WINDOW_MS) } satisfies Omit<
    ChecksOf<SignalVerification>,
    'method' | 'secret'
  >,
});

const checkSignal = objectOf({
  required: { schema: checkSchema },
  optional: { verify: checkVerification } satisfies Omit<ChecksOf<HostedSignal>, 'schema'>,
});

/** Checks the signals by name. */
export const checkSignals = withSchema(
  () => ({
    type: 'object',
    maxProperties: MAX_SIGNALS,
    propertyNames: { pattern: SIGNAL_NAME.source },
    additionalProperties: checkSignal.schema(),
  }),
  (value, path, issues) => {
    if (!isObject(value)) return issues.add(path, 'must be an object with a member for each signal');
    const names = Object.keys(value);
    // guard: signals-bounded
    if (names.length > MAX_SIGNALS)
      return issues.add(path, `has ${names.length} signals; the maximum is ${MAX_SIGNALS}`);
    for (const name of names) {
      const signalPath = appendPointer(path, name);
      // guard: signal-name-checked
      if (SIGNAL_NAME.test(name)) checkSignal(value[name] as Json, signalPath, issues);
      else issues.add(signalPath, 'must be a name of 1 to 64 letters, digits or _ . -');
    }
    addSharedSecretIssues(value, path, issues);
  },
);

/** Adds an issue for each secret of two signals. A signature does not cover the name of the signal. */
function addSharedSecretIssues(signals: JsonObject, path: string, issues: DefinitionIssues): void {
  const owners = new Map<Json, string>();
  for (const [name, signal] of Object.entries(signals)) {
    const verify = isObject(signal) ? signal.verify : undefined;
    if (!isObject(verify) || typeof verify.secret !== 'string') continue;
    const owner = owners.get(verify.secret);
    // guard: secrets-of-signals-differ
    if (owner !== undefined)
      issues.add(
        `${appendPointer(path, name)}/verify/secret`,
        `is also the secret of ${quoteText(owner)}; a delivery of one would be accepted as the other. Use another secret`,
      );
    owners.set(verify.secret, name);
  }
}

function reasonOf(thrown: unknown): string {
  const { reason } = (thrown instanceof LoopError ? (thrown.data ?? {}) : {}) as { readonly reason?: unknown };
  if (typeof reason === 'string') return reason;
  return thrown instanceof Error ? thrown.message : 'it cannot be read';
}

/** Returns the pointer of an error below the value that was checked; empty for one into another document. */
function pathOf(thrown: unknown): string {
  const { path } = (thrown instanceof LoopError ? (thrown.data ?? {}) : {}) as { readonly path?: unknown };
  return typeof path === 'string' && path.startsWith('/') ? path : '';
}
