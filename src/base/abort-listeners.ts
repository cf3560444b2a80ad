/**
 * Abort callbacks by AbortSignal. A signal is reused across effects, so it gets one permanent listener, which runs a
 * set of callbacks.
 */
const listenersBySignal = new WeakMap<AbortSignal, Set<() => void>>();

/**
 * Returns the set of callbacks that run when a signal aborts. Add yours, and delete it when done. Check `aborted`
 * first: a callback that is added to an aborted signal never runs.
 */
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
