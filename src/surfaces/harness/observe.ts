/** Reads what happened in a case: the end of a turn, its tools, its receipts, and the verification of the store. */
import { LoopError } from '../../base/errors.js';
import { ownText } from '../../base/own-property.js';
import type { Host } from '../../host/host.js';
import type { ReceiptArchive } from '../../host/receipts/receipt-archive.js';
import { copyAsJson } from '../../json/value.js';
import type { ReceiptPredicate, ReceiptVerdict } from '../../protocol/receipt.js';
import type { TurnResult } from '../../protocol/trace.js';
import { payloadOf } from '../../views/receipt/envelope.js';
import { parseStatement } from '../../views/receipt/statement.js';
import type { ObservedReceipts, ObservedTurn } from './differences.js';

/** How a turn ended: its result, or the error with which the host refused it. */
export type TurnEnd = TurnResult | { readonly refusal: LoopError };

/** Returns what happened in a turn. */
export async function observeTurn(host: Host, end: TurnEnd): Promise<ObservedTurn> {
  const archive = receiptsOf(host);
  const shared = {
    toolCalls: 'refusal' in end ? [] : await toolCallsOf(host, end.turnId),
    receipts: await observeReceipts(archive),
    verdict: await verdictOf(host),
  };
  if ('refusal' in end) {
    const { code, message } = end.refusal;
    return { status: 'error', code, reason: message, output: undefined, ...shared };
  }
  const error = 'error' in end ? end.error : undefined;
  return {
    status: end.status,
    code: error?.code,
    reason: 'reason' in end ? end.reason : error?.message,
    output: end.status === 'ok' ? copyAsJson(end.output, 'the output') : undefined,
    ...shared,
  };
}

/** Returns the receipts of the store of a case, which is durable. */
export function receiptsOf({ receipts }: Host): ReceiptArchive {
  if (receipts !== undefined) return receipts;
  throw new LoopError('RECEIPT_NOT_FOUND', 'The store of the case makes no receipts.');
}

/** Returns the verification of the whole store; undefined if nothing was recorded in it, so that there is nothing to verify. */
export async function verdictOf(host: Host): Promise<ReceiptVerdict | undefined> {
  const verdict = await receiptsOf(host).verify(undefined);
  const { sessions, receipts } = verdict.subject;
  return sessions === 0 && receipts === 0 && (await host.archive.sessionIds()).length === 0 ? undefined : verdict;
}

/** Returns the tools that a turn started, in order; none if there is no such turn. */
export async function toolCallsOf({ archive }: Host, turnId: string): Promise<readonly string[]> {
  const trace = (await archive.has(turnId)) ? await archive.trace(turnId) : [];
  return trace.flatMap(({ type, payload }) => (type === 'call.tool.invoked' ? [ownText(payload, 'toolName')] : []));
}

/** Returns what the receipts of the store of a case say, the sessions in the order of their first receipts. */
export async function observeReceipts(archive: ReceiptArchive): Promise<ObservedReceipts> {
  const sessions = new Set((await archive.list()).map(({ sessionId }) => sessionId));
  const found: FoundReceipt[] = [];
  for (const session of sessions)
    for (const { hash, envelope } of await archive.receiptsOf(session)) {
      const { predicate } = parseStatement(payloadOf(envelope) ?? Buffer.alloc(0));
      found.push({ id: `sha256:${hash}`, predicate });
    }
  return receiptsIn(found);
}

interface FoundReceipt {
  readonly id: string;
  readonly predicate: ReceiptPredicate;
}

/** Joins receipts. An effect that several receipts name has the state of the last one. */
function receiptsIn(found: readonly FoundReceipt[]): ObservedReceipts {
  const predicates = found.map(({ predicate }) => predicate);
  const effects = new Map<string, { readonly name: string; readonly state: string }>();
  for (const { key, name, state } of predicates.flatMap((predicate) => predicate.effects))
    effects.set(key, { name, state });
  const names = predicates.flatMap(({ context = [] }) => context.map(({ name }) => name));
  const last = predicates.at(-1);
  return {
    ids: found.map(({ id }) => id),
    state: last?.state,
    final: last?.final,
    effects: [...effects.values()],
    context: [...new Set(names)],
    approvals: predicates.reduce((sum, { approvals }) => sum + approvals.length, 0),
  };
}
