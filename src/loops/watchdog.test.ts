import { expect } from 'vitest';
import { verifies } from '../../spec/verifies.js';
import { ManualClock } from '../testing/manual-clock.js';
import { Watchdog } from './watchdog.js';

const tick = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));
const never = (): Promise<never> => new Promise(() => {});
const timeoutError = (): Error => new Error('late');

verifies('agent.hostile', 'work that never settles times out, and work that settles in time does not', async () => {
  const clock = new ManualClock(1_000);
  const watchdog = new Watchdog(clock);
  expect(await watchdog.withTimeout(50, Promise.resolve('quick'), timeoutError)).toBe('quick');
  await expect(watchdog.withTimeout(50, Promise.reject(new Error('broken')), timeoutError)).rejects.toThrow('broken');
  const timeouts: string[] = [];
  const start = (name: string, ms: number): void => {
    watchdog
      .withTimeout(ms, never(), timeoutError)
      .catch((thrown: Error) => timeouts.push(`${name} ${thrown.message} ${clock.now()}`));
  };
  start('second', 500);
  start('first', 100);
  await tick();
  start('third', 200);
  await tick();
  await clock.advance(99);
  expect(timeouts).toEqual([]);
  await clock.advance(1);
  await clock.advance(1_000);
  expect(timeouts).toEqual(['first late 1100', 'third late 1200', 'second late 1500']);
  expect(clock.nextWakeAt).toBeUndefined();
});

verifies('agent.hostile', 'work whose timeout passes before the first check times out too', async () => {
  const clock = new ManualClock(1_000);
  const watchdog = new Watchdog(clock);
  const work = watchdog.withTimeout(100, never(), timeoutError);
  await clock.advance(5_000);
  await expect(work).rejects.toThrow('late');
});

verifies('agent.rounds', 'work that settles at once starts no timer, and close stops the timer', async () => {
  const clock = new ManualClock(1_000);
  const watchdog = new Watchdog(clock);
  for (let n = 0; n < 1_000; n++) await watchdog.withTimeout(50, Promise.resolve(n), timeoutError);
  await Promise.all(Array.from({ length: 100 }, (_, n) => watchdog.withTimeout(50, Promise.resolve(n), timeoutError)));
  await tick();
  expect(clock.nextWakeAt).toBeUndefined();
  let hasEnded = false;
  const pending = watchdog.withTimeout(50, never(), timeoutError).finally(() => {
    hasEnded = true;
  });
  pending.catch(() => {});
  await tick();
  expect(clock.nextWakeAt).toBe(1_050);
  watchdog.close();
  expect(clock.nextWakeAt).toBeUndefined();
  await clock.advance(1_000);
  expect(hasEnded).toBe(false);
});
