import { expect } from 'vitest';
import { verifies } from '../../../spec/verifies.js';
import { ManualClock } from '../../testing/manual-clock.js';
import { Watchdog } from './watchdog.js';

const tick = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));
const never = (): Promise<never> => new Promise(() => {});
const late = (): Error => new Error('late');

verifies('agent.hostile', 'a tool that never returns is waited for, or one that does is cut off', async () => {
  const clock = new ManualClock(1_000);
  const watchdog = new Watchdog(clock);
  expect(await watchdog.withTimeout(50, Promise.resolve('quick'), late)).toBe('quick');
  await expect(watchdog.withTimeout(50, Promise.reject(new Error('broken')), late)).rejects.toThrow('broken');
  const ends: string[] = [];
  const watch = (name: string, ms: number): void => {
    watchdog
      .withTimeout(ms, never(), late)
      .catch((thrown: Error) => ends.push(`${name} ${thrown.message} ${clock.now()}`));
  };
  watch('second', 500);
  watch('first', 100);
  await tick();
  watch('third', 200);
  await tick();
  await clock.advance(99);
  expect(ends).toEqual([]);
  await clock.advance(1);
  await clock.advance(1_000);
  expect(ends).toEqual(['first late 1100', 'third late 1200', 'second late 1500']);
  expect(clock.nextWakeAt).toBeUndefined();
});

verifies('agent.hostile', 'a tool that is over before anybody looks is late all the same', async () => {
  const clock = new ManualClock(1_000);
  const watchdog = new Watchdog(clock);
  const ended = watchdog.withTimeout(100, never(), late);
  await clock.advance(5_000);
  await expect(ended).rejects.toThrow('late');
});

verifies('agent.rounds', 'each call of a tool sets a timer, or keeps the process alive', async () => {
  const clock = new ManualClock(1_000);
  const watchdog = new Watchdog(clock);
  for (let n = 0; n < 1_000; n++) await watchdog.withTimeout(50, Promise.resolve(n), late);
  await Promise.all(Array.from({ length: 100 }, (_, n) => watchdog.withTimeout(50, Promise.resolve(n), late)));
  await tick();
  expect(clock.nextWakeAt).toBeUndefined();
  let ended = false;
  const waiting = watchdog.withTimeout(50, never(), late).finally(() => {
    ended = true;
  });
  waiting.catch(() => {});
  await tick();
  expect(clock.nextWakeAt).toBe(1_050);
  watchdog.close();
  expect(clock.nextWakeAt).toBeUndefined();
  await clock.advance(1_000);
  expect(ended).toBe(false);
});
