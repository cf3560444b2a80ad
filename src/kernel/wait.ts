/** Steps that wait for a point in time or for a signal. The wait is recorded before it begins. */

import { toStoreFault } from '../base/errors.js';
import { assertDuration } from '../base/step-errors.js';
import { Period } from '../journal/period.js';
import { newDiscardedEntry, parsePayload } from '../journal/signal-entries.js';
import type { SignalType } from '../protocol/body.js';
import type { Entry } from '../protocol/entry.js';
import type { Json } from '../protocol/json.js';
import type { Step } from './run.js';

/**
 * Waits for at least `ms` milliseconds. After a restart, the recorded end applies. Throws VALUE_INVALID if `ms` is
 * negative or not finite.
 */
export async function waitForTimer(step: Step, ms: number): Promise<void> {
  const { run, key, lifetime, recorded } = step;
  const { clock, session } = run.deps;
  assertDuration(ms, key);
  // guard: timer-end-recorded
  const until = recorded?.openEntry?.until ?? clock.now() + ms;
  if (await run.openStep(step, { seq: 0, at: 0, type: 'timer.set', key, until, value: ms })) return;
  const period = new Period(clock, { id: `${session} ${key}`, until, durationMs: ms }, recorded === undefined);
  await run.waitForDurability(lifetime);
  // guard: timer-waits-until-due
  if (period.remainingMs > 0) {
    await run.attempt.park<void>(period.pendingStep(key), lifetime, (wake) => {
      period.sleep().then(wake, (error: unknown) => {
        if (!period.isStopped) run.attempt.fail(toStoreFault(error));
      });
      return () => period.stop(run.isOver);
    });
  }
  run.push(lifetime, { seq: 0, at: 0, type: 'timer.fired', key });
}

/**
 * Waits for the oldest signal of a name that no wait has received and that this root may receive, and returns its
 * payload as `validate` returns it. A payload that `validate` refuses is discarded, and the wait continues.
 */
export async function waitForSignal(step: Step, signal: string | SignalType): Promise<unknown> {
  const { run, key, lifetime, recorded } = step;
  const { sessionState } = run.deps;
  const { name, validate } = typeof signal === 'string' ? { name: signal, validate: undefined } : signal;
  const isEnded = await run.openStep(step, { seq: 0, at: 0, type: 'wait.opened', key, name });
  if (isEnded && recorded?.closeEntry !== undefined) {
    const value = (await run.recordedOutcome(recorded.closeEntry)) as Json | undefined;
    const parsed = parsePayload(value, validate);
    // A payload that was accepted and is refused now shows that the code has changed.
    if (parsed.error === undefined) return parsed.value;
    return run.failWithMismatch(key, { ...recorded.closeEntry, value }, { type: 'wait.opened', name });
  }
  lifetime.throwIfEnded();
  let received = undefined as ReturnType<typeof parsePayload> | undefined;
  const receive = (entry: Entry, value: Json | undefined): void => {
    const parsed = parsePayload(value, validate);
    const settled = { seq: 0, at: 0, type: 'wait.settled', key, signalId: entry.key, value };
    // guard: invalid-signal-discarded
    const discarded = newDiscardedEntry(entry, key, parsed.error);
    if (discarded !== undefined || parsed.error === undefined)
      run.deps.sessionState.apply(run.push(lifetime, discarded ?? settled));
    if (discarded === undefined) received = parsed;
  };
  // A signal is received synchronously with its arrival, so that no other wait can receive it too. One whose value must
  // be fetched first is received below, if it is still in the inbox.
  const onArrival = (entry: Entry): void => {
    if (entry.blob === undefined || entry.value !== undefined) receive(entry, entry.value);
  };
  for (;;) {
    const entry =
      sessionState.oldestSignal(name, run.root) ??
      (await run.waitForEntry({ kind: 'signal', key, name }, lifetime, `signal ${name}`, onArrival));
    const value = (await run.recordedOutcome(entry)) as Json | undefined;
    if (received === undefined && sessionState.oldestSignal(name, run.root) === entry) {
      lifetime.throwIfEnded();
      receive(entry, value);
    }
    if (received?.error !== undefined) throw received.error;
    if (received !== undefined) return received.value;
  }
}
