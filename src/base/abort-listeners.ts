/** Who is to hear of it when a signal aborts. Signals are used again and again, so each gets one listener for good. */
const listenersBySignal = new WeakMap<AbortSignal, Set<() => void>>();

/** Those who listen to a signal that has not aborted: add yourself, and leave when you are done. */
export function abortListenersOf(signal: AbortSignal): Set<() => void> {
  const known = listenersBySignal.get(signal);
  if (known !== undefined) return known;
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
