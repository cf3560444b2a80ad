/**
 * Reads documents of hosted loops: a document is copied, checked completely and frozen. Unknown members are refused at
 * every level, so that a misspelt stop condition never means "no condition".
 */
import { isObject } from '../../base/own-property.js';
import { digestOfText } from '../../journal/record.js';
import { canonicalJson } from '../../json/canonical.js';
import { copyAsJson } from '../../json/value.js';
import { contextSkillsCheck } from '../../loops/definition/context-skills.js';
import { copyDocument } from '../../loops/definition/copy-document.js';
import { checkLoopId } from '../../loops/definition/loop-identity.js';
import {
  anyValue,
  DefinitionIssues,
  listOf,
  membersSchema,
  objectOf,
  oneOf,
  textMatching,
} from '../../loops/definition/shape.js';
import type {
  CatchUpRule,
  HandoffRule,
  HostedLoopDocument,
  HostedTurnSettings,
  OverlapRule,
} from '../../protocol/hosted-loop.js';
import type { Json, JsonObject } from '../../protocol/json.js';
import {
  type ChecksOf,
  checkHostedId,
  checkProjectionMapping,
  checkRetry,
  checkSchedule,
  checkSignals,
  checkStop,
  checkTerminal,
  MISSING_STOP,
  scheduleKindOf,
} from './document-checks.js';
import { addTurnGrantIssues, checkGrant, checkTurnGrant } from './turn-grant.js';

/** The reference to the turn before, in `turn.contextSkills`. */
export const PREVIOUS_RECEIPT = 'receipt:previous';

const MAX_HANDOFFS = 20;
const MAX_SENDERS = 100;
const MAX_REASON_CHARS = 1000;

const turnChecks = {
  grant: checkTurnGrant,
  contextSkills: contextSkillsCheck((text) => text === PREVIOUS_RECEIPT),
  history: oneOf(['none', 'session'] satisfies readonly HostedTurnSettings['history'][]),
} as const satisfies ChecksOf<HostedTurnSettings>;

const { when, grant, ...requiredOfHandoff } = {
  target: checkHostedId,
  when: checkTerminal,
  input: checkProjectionMapping,
  grant: checkTurnGrant,
  reason: textMatching(
    `text of 1 to ${MAX_REASON_CHARS} characters that is not blank`,
    new RegExp(`^(?=[^]*\\S)[^]{1,${MAX_REASON_CHARS}}$`),
  ),
} satisfies ChecksOf<HandoffRule>;

const documentChecks = {
  id: checkHostedId,
  loop: checkLoopId,
  input: anyValue,
  next: checkProjectionMapping,
  grant: checkGrant,
  turn: objectOf({ optional: turnChecks }),
  stop: checkStop,
  schedule: checkSchedule,
  overlap: oneOf(['skip', 'queue-one'] satisfies readonly OverlapRule[]),
  catchUp: oneOf(['none', 'one', 'all'] satisfies readonly CatchUpRule[]),
  signals: checkSignals,
  retry: checkRetry,
  handoffs: listOf(objectOf({ required: requiredOfHandoff, optional: { when, grant } }), MAX_HANDOFFS),
  acceptsHandoffsFrom: listOf(checkHostedId, MAX_SENDERS),
} as const satisfies ChecksOf<HostedLoopDocument>;

const { id, loop, grant: grantOfLoop, stop, ...optional } = documentChecks;
const required = { id, loop, grant: grantOfLoop, stop };

const checkMembers = objectOf({
  required,
  optional,
  missing: {
    grant:
      'is missing: a hosted loop always has a grant for all its turns; { allowedTools = [], limits = {} } permits no tool',
    stop: MISSING_STOP,
  },
});

/** Returns the JSON Schema (draft 2020-12) of a hosted loop file, for editors. */
export function hostedLoopSchema(): JsonObject {
  const { properties, ...members } = membersSchema(required, optional);
  return {
    $schema: 'https://json-schema.org/draft/2020-12/schema',
    title: 'Rondo hosted loop',
    description: 'A loop whose turns are run one after another, only while a stop policy allows it.',
    ...members,
    properties: { $schema: { description: 'The JSON Schema of this file.' }, ...(properties as JsonObject) },
    additionalProperties: false,
  };
}

/**
 * Returns a private, frozen copy of a hosted loop document. Throws DEFINITION_INVALID, or GRANT_INVALID if only grants
 * are invalid, with `path`, `reason` and up to 20 `flaws` in its data. `where` names the document in messages.
 */
export function parseHostedLoop(document: unknown, where = 'The document'): HostedLoopDocument {
  const issues = new DefinitionIssues();
  const copy = copyDocument(document, issues);
  if (isObject(copy)) {
    checkMembers(copy, '', issues);
    addRelationIssues(copy, issues);
  } else if (issues.count === 0) issues.add('', 'must be an object: one hosted loop per document');
  if (issues.count > 0)
    throw issues.toError(
      where,
      'hosted loop',
      hasOnlyGrantIssues(issues, copy) ? 'GRANT_INVALID' : 'DEFINITION_INVALID',
    );
  return freeze(copy as Json) as unknown as HostedLoopDocument;
}

/** Returns the digest of a document, which identifies its content. */
export function hostedLoopDigest(document: HostedLoopDocument): string {
  return digestOfText(canonicalJson(copyAsJson(document, 'a hosted loop') as Json));
}

/** Adds the issues of members that depend on others. */
function addRelationIssues(document: JsonObject, issues: DefinitionIssues): void {
  const { schedule, handoffs } = document;
  const kind = scheduleKindOf(schedule);
  for (const member of ['overlap', 'catchUp']) {
    // guard: due-time-rules-need-due-times
    if (!Object.hasOwn(document, member) || kind === 'cron' || kind === 'everyMs') continue;
    issues.add(`/${member}`, 'has no effect without a schedule with cron or everyMs; remove it, or add a schedule');
  }
  for (const [index, handoff] of (Array.isArray(handoffs) ? handoffs : []).entries())
    if (isObject(handoff) && handoff.target === document.id)
      issues.add(`/handoffs/${index}/target`, 'is this hosted loop; a handoff is to another one');
  addTurnGrantIssues(document, issues);
}

const GRANT_PATH = /^\/(?:turn\/|handoffs\/\d+\/)?grant(?:\/|$)/;

function hasOnlyGrantIssues({ list }: DefinitionIssues, document: Json | undefined): boolean {
  return isObject(document) && Object.hasOwn(document, 'grant') && list.every(({ path }) => GRANT_PATH.test(path));
}

/** Freezes a value and everything in it. */
function freeze(value: Json): Json {
  if (typeof value !== 'object' || value === null) return value;
  for (const part of Object.values(value)) freeze(part as Json);
  return Object.freeze(value);
}
