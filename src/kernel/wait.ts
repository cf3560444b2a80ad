/** Steps that wait for a point in time or for a signal. The wait is recorded before it begins. */

import { LoopError, toStoreFault } from '../base/errors.js';
import { Period } from '../journal/period.js';
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
  if (!(ms >= 0 && Number.isFinite(ms)))
    throw new LoopError('VALUE_INVALID', `Cannot sleep for ${ms} ms at ${key}.`, { key });
  // guard: timer-end-recorded
  const until = recorded?.openEntry?.until ?? clock.now() + ms;
  if (await run.openStep(step, { seq: 0, at: 0, type: 'timer.set', key, until, value: ms })) return;
  const period = new Period(clock, { id: `${session} ${key}`, until, durationMs: ms }, recorded === undefined);
  await run.waitForDurability(lifetime);
  // guard: timer-waits-until-due
  if (period.remainingMs > 0) {
    await run.attempt.park<void>({ kind: 'timer', key, until }, lifetime, (wake) => {
      period.sleep().then(wake, (error: unknown) => {
        if (!period.isStopped) run.attempt.fail(toStoreFault(error));
      });
      return () => period.stop(run.isOver);
    });
  }
  run.push(lifetime, { seq: 0, at: 0, type: 'timer.fired', key });
}

/** Waits for the oldest signal of a name that no wait has received, and returns its value. */
export async function waitForSignal(step: Step, name: string): Promise<Json | undefined> {
  const { run, key, lifetime, recorded } = step;
  const { sessionState } = run.deps;
  const isEnded = await run.openStep(step, { seq: 0, at: 0, type: 'wait.opened', key, name });
  if (isEnded && recorded?.closeEntry !== undefined)
    return (await run.recordedOutcome(recorded.closeEntry)) as Json | undefined;
  lifetime.throwIfEnded();
  let isReceived = false;
  const receive = (signal: Entry, value: Json | undefined): void => {
    run.applyToState(run.push(lifetime, { seq: 0, at: 0, type: 'wait.settled', key, signalId: signal.key, value }));
    isReceived = true;
  };
  // A signal is received synchronously with its arrival, so that no other wait can receive it too. One whose value must
  // be fetched first is received below, if it is still in the inbox.
  const onArrival = (signal: Entry): void => {
    if (signal.blob === undefined || signal.value !== undefined) receive(signal, signal.value);
  };
  for (;;) {
    const signal =
      sessionState.oldestSignal(name) ??
      (await run.waitForEntry({ kind: 'signal', key, name }, lifetime, `signal ${name}`, onArrival));
    const value = (await run.recordedOutcome(signal)) as Json | undefined;
    if (isReceived) return value;
    if (sessionState.oldestSignal(name) !== signal) continue;
    lifetime.throwIfEnded();
    receive(signal, value);
    return value;
  }
}
