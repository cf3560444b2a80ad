/** Steps that wait for something outside the run: a time, or a signal. What is waited for is recorded before the waiting. */

import { faultOf, LoopError } from '../base/errors.js';
import { Period } from '../journal/period.js';
import type { Entry } from '../protocol/entry.js';
import type { Json } from '../protocol/json.js';
import type { Run, Site } from './run.js';

export async function waitUntil(run: Run, site: Site, ms: number): Promise<void> {
  const { key, life, seen } = site;
  const { clock, session } = run.parts;
  if (!(ms >= 0 && Number.isFinite(ms)))
    throw new LoopError('VALUE_INVALID', `Cannot sleep for ${ms} ms at ${key}.`, { key });
  // guard: timer-end-recorded
  const until = seen?.open?.until ?? clock.now() + ms;
  if (await run.enter(site, { seq: 0, at: 0, type: 'timer.set', key, until, value: ms })) return;
  const period = new Period(clock, { id: `${session} ${key}`, until, ms }, seen === undefined);
  await run.barrier(life);
  // guard: timer-waits-until-due
  if (period.left > 0) {
    await run.attempt.park<void>({ kind: 'timer', key, until }, life, (wake) => {
      period.sleep().then(wake, (error: unknown) => {
        if (!period.stopped) run.attempt.fail(faultOf(error));
      });
      return () => period.stop(run.over);
    });
  }
  run.push(life, { seq: 0, at: 0, type: 'timer.fired', key });
}

export async function waitForSignal(run: Run, site: Site, name: string): Promise<Json | undefined> {
  const { key, life, seen } = site;
  const ended = await run.enter(site, { seq: 0, at: 0, type: 'wait.opened', key, name });
  if (ended && seen?.close !== undefined) return (await run.recall(seen.close)) as Json | undefined;
  life.check();
  let taken = false;
  const take = (signal: Entry, value: Json | undefined): void => {
    run.note(run.push(life, { seq: 0, at: 0, type: 'wait.settled', key, signal: signal.key, value }));
    taken = true;
  };
  const { standing } = run.parts;
  for (;;) {
    // Taken in the same breath as it comes, so that no other wait can take it too; unless its value must be fetched first.
    const arrival = (one: Entry): void => {
      if (one.blob === undefined || one.value !== undefined) take(one, one.value);
    };
    const signal =
      standing.kept(name) ?? (await run.outside({ kind: 'signal', key, name }, life, `signal ${name}`, arrival));
    const value = (await run.recall(signal)) as Json | undefined;
    if (taken) return value;
    if (standing.kept(name) !== signal) continue;
    life.check();
    take(signal, value);
    return value;
  }
}
