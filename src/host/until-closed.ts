/** Ends waits for other processes when the host is closed. */
import { Fault } from '../base/errors.js';

/** Returns the fault of what a closed host refuses or no longer waits for. */
export function hostClosedFault(): Fault {
  return new Fault('SESSION_CLOSED', 'The host was closed.');
}

/** Waits for something that other processes do. Throws SESSION_CLOSED if the host is closed meanwhile. */
export async function untilClosed<T>(waiting: Promise<T>, closing: AbortSignal): Promise<T> {
  let onClosing: (() => void) | undefined;
  const closed = new Promise<never>((_, reject) => {
    onClosing = () => reject(hostClosedFault());
    if (closing.aborted) onClosing();
    else closing.addEventListener('abort', onClosing);
  });
  try {
    return await Promise.race([closed, waiting]);
  } catch (thrown) {
    throw closing.aborted ? hostClosedFault() : thrown;
  } finally {
    if (onClosing !== undefined) closing.removeEventListener('abort', onClosing);
  }
}
