/** Compares what a case expects with what happened. What a case does not mention is not compared. */
import { isObject, ownProperty } from '../../base/own-property.js';
import { jsonEquals } from '../../json/value.js';
import type { Json } from '../../protocol/json.js';
import type { ReceiptState, ReceiptVerdict } from '../../protocol/receipt.js';
import type { ReceiptExpectation, TurnExpectation, VerdictExpectation } from './harness-case.js';

/** Something that differs from what a case expects. */
export interface Difference {
  /** A JSON Pointer into the case. */
  readonly path: string;
  /** Absent if nothing is expected there. */
  readonly expected?: Json;
  /** Absent if there is nothing. */
  readonly actual?: Json;
}

/** What the receipts of a turn say. */
export interface ObservedReceipts {
  readonly ids: readonly string[];
  /** Of the last receipt; undefined without receipts. */
  readonly state: ReceiptState | undefined;
  readonly final: boolean | undefined;
  readonly effects: readonly { readonly name: string; readonly state: string }[];
  readonly context: readonly string[];
  readonly approvals: number;
}

/** What happened in a case with one turn. */
export interface ObservedTurn {
  readonly status: string;
  readonly code: string | undefined;
  /** The reason of a stop, or the message of an error. */
  readonly reason: string | undefined;
  readonly output: Json | undefined;
  readonly toolCalls: readonly string[];
  readonly receipts: ObservedReceipts;
  /** Undefined if nothing was recorded. */
  readonly verdict: ReceiptVerdict | undefined;
}

/** Returns what differs in a case with one turn. */
export function turnDifferences(expect: TurnExpectation, observed: ObservedTurn): readonly Difference[] {
  const { code, reason, output, outputContains, receipt, toolCalls } = expect;
  const isReason = reason === undefined || (observed.reason ?? '').includes(reason);
  return [
    ...same('/expect/status', expect.status, observed.status),
    ...(code === undefined ? [] : same('/expect/code', code, observed.code)),
    ...(isReason ? [] : [differenceOf('/expect/reason', reason, observed.reason)]),
    ...(output === undefined ? [] : same('/expect/output', output, observed.output)),
    ...(outputContains === undefined ? [] : contained('/expect/outputContains', outputContains, observed.output)),
    ...(receipt === undefined ? [] : receiptDifferences(receipt, observed.receipts)),
    ...(toolCalls === undefined ? [] : same('/expect/toolCalls', [...toolCalls], [...observed.toolCalls])),
    ...verdictDifferences(expect.verdict, observed.verdict),
  ];
}

/**
 * Returns what differs in the verification of a store, which is expected to be valid, with nothing missing. The verdict is
 * undefined if nothing was recorded.
 */
export function verdictDifferences(
  expect: VerdictExpectation | undefined,
  actual: Pick<ReceiptVerdict, 'valid' | 'complete' | 'reasons'> | undefined,
): readonly Difference[] {
  if (actual === undefined)
    return expect === undefined ? [] : [differenceOf('/expect/verdict', { ...expect }, undefined)];
  const { valid = true, complete } = expect ?? {};
  const isComplete = complete === undefined ? actual.complete !== false : complete === actual.complete;
  const found = `${actual.valid} (${actual.reasons.join(', ')})`;
  return [
    // guard: store-of-case-verified
    ...(actual.valid === valid ? [] : [differenceOf('/expect/verdict/valid', valid, found)]),
    ...(isComplete ? [] : [differenceOf('/expect/verdict/complete', complete ?? 'true or unknown', actual.complete)]),
  ];
}

function receiptDifferences(expect: ReceiptExpectation, actual: ObservedReceipts): readonly Difference[] {
  const path = '/expect/receipt';
  const { state, final, effects, context, chain, approvals } = expect;
  const listed =
    typeof effects === 'number'
      ? actual.effects.length
      : actual.effects.map(({ name, state: end }) => ({ name, state: end }));
  return [
    ...same(`${path}/state`, state, actual.state),
    ...(final === undefined ? [] : same(`${path}/final`, final, actual.final)),
    ...(effects === undefined ? [] : same(`${path}/effects`, effects as Json, listed)),
    ...(context === undefined ? [] : same(`${path}/context`, [...context], [...actual.context])),
    ...(chain === undefined ? [] : same(`${path}/chain`, chain, actual.ids.length)),
    ...(approvals === undefined ? [] : same(`${path}/approvals`, approvals, actual.approvals)),
  ];
}

/** Returns a difference unless both values are the same JSON. */
export function same(path: string, expected: Json, actual: Json | undefined): readonly Difference[] {
  return jsonEquals(expected, actual) ? [] : [differenceOf(path, expected, actual)];
}

/**
 * Returns the differences of a value that must contain another one: an object may have further members, at any depth; a
 * list must have as many elements.
 */
export function contained(path: string, expected: Json, actual: Json | undefined): readonly Difference[] {
  if (Array.isArray(expected)) {
    if (!Array.isArray(actual) || actual.length !== expected.length) return [differenceOf(path, expected, actual)];
    return expected.flatMap((item, index) => contained(`${path}/${index}`, item, actual[index]));
  }
  if (!isObject(expected)) return same(path, expected, actual);
  if (!isObject(actual)) return [differenceOf(path, expected, actual)];
  return Object.entries(expected).flatMap(([name, member]) =>
    contained(`${path}/${name.replaceAll('~', '~0').replaceAll('/', '~1')}`, member, ownProperty(actual, name)),
  );
}

/** Returns a difference. What is undefined is left out. */
export function differenceOf(path: string, expected: Json | undefined, actual: Json | undefined): Difference {
  return { path, ...(expected !== undefined && { expected }), ...(actual !== undefined && { actual }) };
}
