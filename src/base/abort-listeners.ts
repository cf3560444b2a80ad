/**
 * Abort callbacks per AbortSignal. A signal is reused across effects, so it gets one permanent listener and a set of
 * callbacks.
 */
const listenersBySignal = new WeakMap<AbortSignal, Set<() => void>>();

/** Returns the callbacks of a signal that has not aborted. Add yours, and delete it when done. */
export function abortListenersOf(signal: AbortSignal): Set<() => void> {
  const existing = listenersBySignal.get(signal);
  if (existing !== undefined) return existing;
  const listeners = new Set<() => void>();
  listenersBySignal.set(signal, listeners);
  signal.addEventListener(
    'abort',
    () => {
      for (const listener of [...listeners]) listener();
    },
    { once: true },
  );
  return listeners;
}
