/** Who is to hear of it when a signal aborts. Signals are used again and again, so each gets one listener for good. */
const heard = new WeakMap<AbortSignal, Set<() => void>>();

/** Those who listen to a signal that has not aborted: add yourself, and leave when you are done. */
export function listenersOf(signal: AbortSignal): Set<() => void> {
  const known = heard.get(signal);
  if (known !== undefined) return known;
  const listeners = new Set<() => void>();
  heard.set(signal, listeners);
  signal.addEventListener(
    'abort',
    () => {
      for (const listener of [...listeners]) listener();
    },
    { once: true },
  );
  return listeners;
}
