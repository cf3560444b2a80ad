import { expect, vi } from 'vitest';
import { verifies } from '../../spec/verifies.js';
import { LoopError } from './errors.js';
import { Lifetime } from './lifetime.js';

const cancelled = new LoopError('CANCELLED', 'cancelled');

verifies('kernel.cancel', 'work that settles leaves no listener on its lifetime', async () => {
  for (const work of [() => Promise.resolve(1), () => Promise.reject(new Error('failed'))]) {
    const lifetime = new Lifetime();
    const added = vi.spyOn(lifetime, 'onEnd');
    const removed = vi.spyOn(lifetime, 'offEnd');
    const onSettled = vi.fn();
    await lifetime.raceWithEnd(work(), onSettled).catch(() => {});
    expect(onSettled).toHaveBeenCalledTimes(1);
    expect(removed.mock.calls).toEqual(added.mock.calls);
  }
});

verifies('kernel.cancel', 'work is reported as settled also after its lifetime has ended', async () => {
  const lifetime = new Lifetime();
  const onSettled = vi.fn();
  const { promise, resolve } = withResolver();
  const raced = lifetime.raceWithEnd(promise, onSettled);
  lifetime.end(cancelled, false);
  await expect(raced).rejects.toBe(cancelled);
  expect(onSettled).not.toHaveBeenCalled();
  resolve();
  await promise;
  expect(onSettled).toHaveBeenCalledTimes(1);
});

function withResolver(): { readonly promise: Promise<void>; readonly resolve: () => void } {
  let resolve = (): void => {};
  const promise = new Promise<void>((done) => {
    resolve = done;
  });
  return { promise, resolve };
}
