/**
 * Statements: what a receipt says, as an in-toto statement. Writing refuses what is not I-JSON. Reading checks every
 * member, and refuses those that it does not know and those that contradict each other.
 */

import {
  finiteNumber,
  flag,
  hexDigest,
  index,
  listOf,
  matching,
  members,
  nonEmptyText,
  oneOf,
  optional,
  recordOf,
  type Shape,
  text,
} from '../../base/document-shape.js';
import { LoopError } from '../../base/errors.js';
import { isInCanonicalOrder, mayHaveLoneSurrogate, signableJson } from '../../json/i-json.js';
import { parseCanonicalJson } from '../../json/strict-json.js';
import type { ReceiptPredicate, ReceiptStatement } from '../../protocol/receipt.js';
import { MAX_PAYLOAD_BYTES } from './envelope.js';

const STATEMENT_TYPE = 'https://in-toto.io/Statement/v1';
const PREDICATE_TYPE = 'urn:rondo:receipt:1';

const MAX_ITEMS = 100_000;
const MAX_REASON_CHARS = 20_000;

const approval = members({
  id: nonEmptyText,
  tool: nonEmptyText,
  by: text(),
  approved: flag,
  effect: nonEmptyText,
  arguments: hexDigest,
});

const effect = members({
  key: nonEmptyText,
  name: text(),
  kind: text(),
  safety: oneOf('pure', 'idempotent', 'keyed', 'once'),
  boundary: optional(text()),
  state: oneOf('done', 'failed', 'unknown', 'denied'),
  intent: optional(index),
  end: optional(index),
  arguments: optional(hexDigest),
  attempts: optional(index),
  resolutions: optional(listOf(members({ by: text(), resolution: oneOf('retry', 'supply', 'fail') }), MAX_ITEMS)),
});

const amounts = recordOf(finiteNumber, 100);

const predicateShape: Shape = members({
  session: nonEmptyText,
  turn: text(),
  sequence: index,
  previous: optional(hexDigest),
  at: matching(
    /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d{1,9})?Z$|^[+-]\d{6}-\d\d-\d\dT[\d:.]+Z$/,
    'an ISO 8601 time in UTC',
  ),
  state: oneOf('ok', 'error', 'cancelled', 'stopped', 'paused', 'refused', 'closed'),
  final: flag,
  reopened: optional(oneOf(true)),
  reason: optional(text(MAX_REASON_CHARS)),
  code: optional(text()),
  loop: members({ id: text(), version: text(), definition: text() }),
  principal: optional(text()),
  grant: optional(members({ id: nonEmptyText, digest: nonEmptyText })),
  budget: optional(members({ before: amounts, after: amounts })),
  approvals: listOf(approval, MAX_ITEMS),
  effects: listOf(effect, MAX_ITEMS),
  context: optional(listOf(members({ name: text(), digest: nonEmptyText, bytes: index }), 1000)),
  hosted: optional(
    members({
      handoff: optional(nonEmptyText),
      head: hexDigest,
      loop: nonEmptyText,
      previous: optional(nonEmptyText),
      turn: index,
    }),
  ),
  journal: members({ from: index, to: index, count: index, root: hexDigest }),
  origin: optional(members({ session: nonEmptyText, turn: nonEmptyText, at: index })),
  redacted: optional(oneOf(true)),
});

const statementShape: Shape = members({
  _type: oneOf(STATEMENT_TYPE),
  subject: listOf(members({ name: text(), digest: members({ sha256: hexDigest }) }), 1),
  predicateType: oneOf(PREDICATE_TYPE),
  predicate: predicateShape,
});

/** Returns the canonical bytes of the statement with this predicate. Throws VALUE_INVALID if it is not a receipt. */
export function statementBytes(predicate: ReceiptPredicate): Buffer {
  const statement: ReceiptStatement = {
    _type: STATEMENT_TYPE,
    predicate,
    predicateType: PREDICATE_TYPE,
    subject: [{ digest: { sha256: predicate.journal.root }, name: predicate.turn }],
  };
  const problem = statementShape(statement) ?? contradictionIn(statement);
  // What has the shape of a statement is plain data, so a sorted one has its canonical text already. The sealer sorts it.
  if (problem === undefined && isInCanonicalOrder(statement)) {
    const text = JSON.stringify(statement);
    if (!mayHaveLoneSurrogate(text)) return Buffer.from(text);
  }
  const text = signableJson(statement);
  if (problem !== undefined) throw invalidStatement(problem);
  return Buffer.from(text);
}

/** Reads a statement. Throws VALUE_INVALID if it is not canonical JSON or not a receipt. */
export function parseStatement(payload: Uint8Array): ReceiptStatement {
  const value = parseCanonicalJson(payload, { maxBytes: MAX_PAYLOAD_BYTES, maxDepth: 8 });
  const problem = statementShape(value) ?? contradictionIn(value as unknown as ReceiptStatement);
  if (problem !== undefined) throw invalidStatement(problem);
  return value as unknown as ReceiptStatement;
}

function invalidStatement(problem: string): LoopError {
  return new LoopError('VALUE_INVALID', `The statement of the receipt is invalid: statement${problem}.`, { problem });
}

/** Returns what contradicts itself in a statement; undefined if nothing does. */
function contradictionIn({ subject, predicate }: ReceiptStatement): string | undefined {
  const { turn, sequence, previous, state, journal } = predicate;
  const [named] = subject;
  if (named === undefined || named.name !== turn || named.digest.sha256 !== journal.root)
    return '.subject: must name the turn and the root of its entries';
  if ((sequence === 0) !== (previous === undefined))
    return '.predicate.previous: must be absent in the first receipt of a session, and only there';
  if ((state === 'closed') !== (turn === ''))
    return '.predicate.turn: must be empty for a closed session, and only then';
  // The span of sequence numbers can exceed the count: entries of other turns can be between those of the turn.
  if (journal.count > 0 ? journal.to - journal.from + 1 < journal.count : journal.to !== journal.from)
    return '.predicate.journal: must cover at least as many sequence numbers as entries';
  return contradictionOfState(predicate);
}

function contradictionOfState(predicate: ReceiptPredicate): string | undefined {
  const { state, final, effects, approvals, code } = predicate;
  if (state === 'closed' && (!final || effects.length > 0 || approvals.length > 0))
    return '.predicate: a closed session has a final receipt without effects and approvals';
  if (state === 'paused' && final) return '.predicate.final: a paused turn has not ended';
  if ((state === 'ok' || state === 'refused') && !final) return '.predicate.final: the turn has ended';
  if (state === 'ok' && code !== undefined) return '.predicate.code: a turn without error has no code';
  return undefined;
}
