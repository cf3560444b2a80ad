/** Runs work that stops being awaited when its signal aborts, whether or not the work itself observes the signal. */

/**
 * Awaits the work, or rejects with the reason of the signal as soon as it aborts. If the signal is already aborted, the
 * work is not started.
 */
export async function abortable<T>(signal: AbortSignal, work: () => Promise<T> | T): Promise<T> {
  signal.throwIfAborted();
  let abort = (): void => undefined;
  const aborted = new Promise<never>((_resolve, reject) => {
    abort = () => reject(signal.reason);
  });
  signal.addEventListener('abort', abort, { once: true });
  try {
    // The async function turns a synchronous throw into a rejection. Otherwise `aborted` could reject unhandled.
    const result = (async () => work())();
    return await Promise.race([result, aborted]);
  } finally {
    signal.removeEventListener('abort', abort);
  }
}
