/** Closed sessions: nothing follows the terminal receipt of a session. */
import { LoopError } from '../../base/errors.js';
import type { Session } from '../../kernel/session.js';
import { receiptHeadView } from '../../views/receipt/sealed-receipts.js';

/** Throws SESSION_SEALED if the session has its terminal receipt. `hasReceipts` is false if the host makes none. */
export function assertNotClosed(session: Session, hasReceipts: boolean): void {
  // guard: closed-session-runs-nothing
  if (!hasReceipts || !session.state(receiptHeadView).isClosed) return;
  const message = `The session "${session.name}" was closed with its terminal receipt. Use another session.`;
  throw new LoopError('SESSION_SEALED', message, { session: session.name });
}
