/**
 * Compares the context of a turn that continues with what it has loaded: files, and summaries of receipts. A changed text
 * would otherwise be mixed with what the model has read before.
 */
import { LoopError } from '../base/errors.js';
import { readContext } from '../loops/context/read-context.js';
import { parseReference } from '../loops/context/reference.js';
import { contextOriginOf } from '../loops/link.js';
import type { RegisteredLoop } from '../loops/registry.js';
import type { TurnResult } from '../protocol/trace.js';
import { type ContextItem, type OpenContext, openContextsOf } from '../views/loaded-context.js';
import type { StoredTurn } from './archive.js';
import { contextSourcesOf, type HostOptions } from './host-options.js';
import type { PinnedLoop } from './pin.js';
import { turnResultOf } from './turn-result.js';

/** A text of context that is not as it was loaded. A type, because an interface is not JSON. */
type ContextChange = {
  readonly name: string;
  readonly recorded: string;
  /** The digest of the text now; absent if it cannot be read. */
  readonly now?: string;
  /** Why it cannot be read. */
  readonly reason?: string;
};

/** Returns the result of a turn whose context has changed; undefined if it can continue. The turn itself is unchanged. */
export async function changedContextResult(
  stored: StoredTurn,
  pinned: PinnedLoop,
  options: HostOptions,
): Promise<TurnResult | undefined> {
  const change = await findContextChange(stored, pinned, options);
  if (change === undefined) return undefined;
  const outcome = { status: 'error', error: change.toErrorRecord() } as const;
  return turnResultOf(stored.identity, outcome, stored.entries, options.clock.now());
}

/**
 * Returns CONTEXT_CHANGED if a text of context of an open call of the turn is not as it was when the call loaded it;
 * undefined otherwise, and for a turn that has ended or was cancelled, which calls no model.
 */
async function findContextChange(
  { identity: { turnId }, turn, entries }: StoredTurn,
  pinned: PinnedLoop,
  options: HostOptions,
): Promise<LoopError | undefined> {
  if (turn.endedEntry !== undefined) return undefined;
  const contexts = openContextsOf(turnId, entries);
  if (contexts.length === 0) return undefined;
  // guard: cancelled-turn-ends-with-changed-context
  if (entries.some(({ type, key }) => type === 'cancel.requested' && key === turnId)) return undefined;
  for (const context of contexts) {
    const definition = definitionOf(context, pinned, options);
    const change = definition && (await firstChange(context.items, definition, options));
    if (change !== undefined) return changedError(turnId, context, change);
  }
  return undefined;
}

/** Returns the definition of the call, which a loop in code may have called without being linked with it. */
function definitionOf(
  { call: { name = '', version = '' } }: OpenContext,
  { definitions }: PinnedLoop,
  { registry }: HostOptions,
): RegisteredLoop | undefined {
  const linked = definitions.find(({ definition }) => definition.id === name && definition.version === version);
  return linked ?? registry.find(name, version);
}

async function firstChange(
  items: readonly ContextItem[],
  registered: RegisteredLoop,
  options: HostOptions,
): Promise<ContextChange | undefined> {
  const sources = contextSourcesOf(options);
  for (const { name, sha256: recorded } of items) {
    const current = await readContext([name], contextOriginOf(registered), sources).then(
      ([text]) => ({ now: text?.sha256 ?? '' }),
      (thrown: unknown) => ({ reason: unreadableReason(thrown) }),
    );
    if (!('now' in current) || current.now !== recorded) return { name, recorded, ...current };
  }
  return undefined;
}

function unreadableReason(thrown: unknown): string {
  if (thrown instanceof LoopError && thrown.code === 'CONTEXT_REFUSED') return thrown.message;
  throw thrown;
}

function changedError(turnId: string, { call }: OpenContext, change: ContextChange): LoopError {
  const { name, recorded, reason } = change;
  const subject = `The context ${JSON.stringify(name)} of "${call.name ?? ''}"`;
  const problem =
    reason === undefined
      ? `has changed since turn ${turnId} loaded it.`
      : `can no longer be compared with what turn ${turnId} loaded. ${reason}`;
  const isReceipt = parseReference(name).kind === 'receipt';
  const advice = isReceipt
    ? 'Start a new turn, which reads the receipts as they are.'
    : `Restore the file (SHA-256 ${recorded}) and resume the turn, or start a new one.`;
  const message = `${subject} ${problem} ${advice}`;
  return new LoopError('CONTEXT_CHANGED', message, { turnId, callId: call.key, ...change });
}
