/** Work that is not waited for any longer than its signal allows, whether or not it listens to the signal itself. */
export async function abortable<T>(signal: AbortSignal, work: () => Promise<T> | T): Promise<T> {
  signal.throwIfAborted();
  let abort = (): void => undefined;
  const aborted = new Promise<never>((_resolve, reject) => {
    abort = () => reject(signal.reason);
  });
  signal.addEventListener('abort', abort, { once: true });
  try {
    // Not called in the list itself: what it throws at once must not leave `aborted` without a listener.
    const working = (async () => work())();
    return await Promise.race([working, aborted]);
  } finally {
    signal.removeEventListener('abort', abort);
  }
}
