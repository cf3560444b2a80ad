/** Steps that wait for something outside the run: a time, or a signal. What is waited for is recorded before the waiting. */

import { LoopError, toStoreFault } from '../base/errors.js';
import { Period } from '../journal/period.js';
import type { Entry } from '../protocol/entry.js';
import type { Json } from '../protocol/json.js';
import type { RunContext, StepContext } from './run-context.js';

export async function waitForTimer(run: RunContext, site: StepContext, ms: number): Promise<void> {
  const { key, lifetime, recorded } = site;
  const { clock, session } = run.deps;
  if (!(ms >= 0 && Number.isFinite(ms)))
    throw new LoopError('VALUE_INVALID', `Cannot sleep for ${ms} ms at ${key}.`, { key });
  // guard: timer-end-recorded
  const until = recorded?.openEntry?.until ?? clock.now() + ms;
  if (await run.openStep(site, { seq: 0, at: 0, type: 'timer.set', key, until, value: ms })) return;
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

export async function waitForSignal(run: RunContext, site: StepContext, name: string): Promise<Json | undefined> {
  const { key, lifetime, recorded } = site;
  const ended = await run.openStep(site, { seq: 0, at: 0, type: 'wait.opened', key, name });
  if (ended && recorded?.closeEntry !== undefined)
    return (await run.recordedOutcome(recorded.closeEntry)) as Json | undefined;
  lifetime.throwIfEnded();
  let taken = false;
  const take = (signal: Entry, value: Json | undefined): void => {
    run.applyToState(run.push(lifetime, { seq: 0, at: 0, type: 'wait.settled', key, signalId: signal.key, value }));
    taken = true;
  };
  const { sessionState } = run.deps;
  for (;;) {
    // Taken in the same breath as it comes, so that no other wait can take it too; unless its value must be fetched first.
    const arrival = (one: Entry): void => {
      if (one.blob === undefined || one.value !== undefined) take(one, one.value);
    };
    const signal =
      sessionState.oldestSignal(name) ??
      (await run.waitForEntry({ kind: 'signal', key, name }, lifetime, `signal ${name}`, arrival));
    const value = (await run.recordedOutcome(signal)) as Json | undefined;
    if (taken) return value;
    if (sessionState.oldestSignal(name) !== signal) continue;
    lifetime.throwIfEnded();
    take(signal, value);
    return value;
  }
}
