/**
 * The log of a store: the receipts of all sessions in one order, as an RFC 6962 tree. It has a journal stream of its own,
 * to which every process appends. A receipt is appended after it is durable; what a crash left out is added later, when
 * the log is read as a whole.
 */
import { ownText } from '../../base/own-property.js';
import type { Clock, Ids } from '../../journal/clock.js';
import { RESERVED_SESSION_PREFIX } from '../../journal/reserved-sessions.js';
import { SharedStream, type StreamEntry } from '../../journal/shared-stream.js';
import type { Store } from '../../journal/store.js';
import type { Json } from '../../protocol/json.js';
import { logLeafOf } from '../../views/receipt/envelope.js';
import type { SealedReceipt } from '../../views/receipt/sealed-receipts.js';
import type { LogContents, LogLeaf, RemovedSession } from '../../views/receipt/verify-store.js';

/** The session that holds the log. */
export const LOG_SESSION = `${RESERVED_SESSION_PREFIX}receipts`;

const LOG_OPENED = 'rondo.log.opened';
const LOG_APPENDED = 'rondo.log.appended';
const LOG_REMOVED = 'rondo.log.removed';
const LOG_CHECKPOINT = 'rondo.log.checkpoint';

interface LogDeps {
  readonly store: Store;
  readonly clock: Clock;
  readonly ids: Ids;
}

/** The state of the log that appending needs: whether it was opened. */
class LogState {
  storeId: string;

  constructor(saved?: Json) {
    this.storeId = ownText(saved, 'storeId');
  }

  apply({ type, value }: StreamEntry): void {
    if (type === LOG_OPENED) this.storeId = ownText(value, 'storeId');
  }

  save(): Json {
    return { storeId: this.storeId };
  }
}

/** The log of one store, as one process uses it. */
export class ReceiptLog {
  private readonly deps: LogDeps;
  private opening: Promise<SharedStream<LogState>> | undefined;

  constructor(deps: LogDeps) {
    this.deps = deps;
  }

  /** Appends a receipt that is durable in its session. */
  async append(session: string, { sequence, envelope }: SealedReceipt): Promise<void> {
    const leaf = logLeafOf(envelope).toString('hex');
    await this.add({ type: LOG_APPENDED, key: `${session}#${sequence}`, value: { session, sequence, leaf } });
  }

  /** Records that a session with receipts is removed. */
  recordRemoval(removed: RemovedSession): Promise<void> {
    return this.add({ type: LOG_REMOVED, key: removed.session, value: { ...removed } });
  }

  /** Records a signed checkpoint. */
  recordCheckpoint(note: string): Promise<void> {
    return this.add({ type: LOG_CHECKPOINT, key: 'checkpoint', value: { note } });
  }

  /** Resolves when everything that was appended so far is durable. */
  async flush(): Promise<void> {
    if (this.opening !== undefined) await (await this.opening).flush();
  }

  /** Reads the whole log. */
  async read(): Promise<LogContents> {
    await this.stream();
    await this.flush();
    const leaves: LogLeaf[] = [];
    const removed: RemovedSession[] = [];
    const checkpoints: string[] = [];
    let storeId = '';
    for await (const entries of this.deps.store.journal.read(LOG_SESSION, 0))
      for (const { type, value } of entries) {
        if (type === LOG_APPENDED) leaves.push(value as unknown as LogLeaf);
        else if (type === LOG_REMOVED) removed.push(value as unknown as RemovedSession);
        else if (type === LOG_CHECKPOINT) checkpoints.push((value as { readonly note: string }).note);
        else if (type === LOG_OPENED) storeId = ownText(value, 'storeId');
      }
    return { storeId, leaves, removed, checkpoints };
  }

  private async add(entry: StreamEntry): Promise<void> {
    const stream = await this.stream();
    await stream.update(() => [entry]).durable;
  }

  private async stream(): Promise<SharedStream<LogState>> {
    const known = await this.opening?.catch(() => undefined);
    if (known !== undefined && known.failure === undefined) return known;
    this.opening = this.open();
    return this.opening;
  }

  private async open(): Promise<SharedStream<LogState>> {
    const { store, clock, ids } = this.deps;
    const stream = await SharedStream.open({ store, clock, name: LOG_SESSION, create: (saved) => new LogState(saved) });
    const value = { storeId: ids.id() };
    stream.update(({ storeId }) => (storeId === '' ? [{ type: LOG_OPENED, key: 'log', value }] : []));
    return stream;
  }
}
