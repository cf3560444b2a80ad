/**
 * The log of a store: the receipts of all sessions in one order, as an RFC 6962 tree. It has a journal stream of its own,
 * to which every process appends. A receipt is appended after it is durable; what a crash left out is added later, when
 * the log is read as a whole.
 */
import { Fault } from '../../base/errors.js';
import { ownText } from '../../base/own-property.js';
import type { Clock, Ids } from '../../journal/clock.js';
import { RESERVED_SESSION_PREFIX } from '../../journal/reserved-sessions.js';
import { SharedStream, type StreamEntry } from '../../journal/shared-stream.js';
import type { Journal, Store } from '../../journal/store.js';
import type { Json } from '../../protocol/json.js';
import { logLeafOf } from '../../views/receipt/envelope.js';
import type { LoggedRemoval, RemovedSession } from '../../views/receipt/removed-sessions.js';
import type { SealedReceipt } from '../../views/receipt/sealed-receipts.js';
import type { LogContents, LogLeaf } from '../../views/receipt/verify-log.js';
import { RECEIPT_SEALED } from '../../views/turns.js';
import type { LengthWitness, LogWitness } from '../host-options.js';

/** The session that holds the log. */
export const LOG_SESSION = `${RESERVED_SESSION_PREFIX}receipts`;

const LOG_OPENED = 'rondo.log.opened';
const LOG_APPENDED = 'rondo.log.appended';
const LOG_REMOVED = 'rondo.log.removed';
const LOG_CHECKPOINT = 'rondo.log.checkpoint';

/** How often the length of the log is kept while it grows, in milliseconds. */
const KEEP_MS = 1000;

/** How long a receipt waits for others that are appended with it, in milliseconds: each append is a commit. */
const GROUP_MS = 10;

/** Returns the Fault of a log that does not continue the checkpoint which is kept outside of the store. */
export function logRewrittenFault(): Fault {
  return new Fault(
    'LOG_REWRITTEN',
    'The log of receipts is not the one of its last checkpoint, which is kept beside the keys: receipts of this store ' +
      'were removed or replaced. Restore the store from a backup. If they were removed on purpose, remove the file ' +
      '*.checkpoint and the directory *.lengths of the store in the directory of the keys, which begins a new log.',
  );
}

/** True if a store has receipts: in its log, or in a session, which has them a little earlier. */
export async function hasReceipts({ journal }: Pick<Store, 'journal'>): Promise<boolean> {
  const sessions = (await journal.list()).map(({ session }) => session);
  if (sessions.includes(LOG_SESSION)) return true;
  // A damaged session says nothing.
  for (const session of sessions) if (await hasReceipt(journal, session).catch(() => false)) return true;
  return false;
}

async function hasReceipt(journal: Journal, session: string): Promise<boolean> {
  for await (const entries of journal.read(session, 0))
    if (entries.some(({ type }) => type === RECEIPT_SEALED)) return true;
  return false;
}

interface LogDeps {
  readonly store: Store;
  readonly clock: Clock;
  readonly ids: Ids;
  /** The newest checkpoint outside of the store. */
  readonly witness: LogWitness | undefined;
  /** The length of the log outside of the store. */
  readonly lengths: LengthWitness | undefined;
}

/** How many of the newest receipts an append is compared with. */
const RECENT_RECEIPTS = 10_000;

/** The state of the log that appending needs: whether it was opened, and which receipts it got last. */
class LogState {
  storeId: string;
  private readonly recent = new Set<string>();

  constructor(saved?: Json) {
    this.storeId = ownText(saved, 'storeId');
  }

  apply(entry: StreamEntry): void {
    if (entry.type === LOG_OPENED) this.storeId = ownText(entry.value, 'storeId');
    if (entry.type !== LOG_APPENDED) return;
    this.recent.add(receiptNameOf(entry));
    const [oldest] = this.recent;
    if (this.recent.size > RECENT_RECEIPTS && oldest !== undefined) this.recent.delete(oldest);
  }

  /** True if the log got this receipt a short time ago: another process may have found it missing, and added it. */
  hasRecent(entry: StreamEntry): boolean {
    return entry.type === LOG_APPENDED && this.recent.has(receiptNameOf(entry));
  }

  save(): Json {
    return { storeId: this.storeId };
  }
}

function receiptNameOf({ key, value }: StreamEntry): string {
  return `${key} ${ownText(value, 'leaf')}`;
}

/** The log of one store, as one process uses it. */
export class ReceiptLog {
  private readonly deps: LogDeps;
  private opening: Promise<SharedStream<LogState>> | undefined;
  /** What the next append writes, and the append that waits or is under way. */
  private waiting: StreamEntry[] = [];
  private appending: Promise<void> | undefined;
  /** Aborted if the next append must not wait for more receipts. */
  private hurry = new AbortController();
  /** When the length of the log was kept last. */
  private keptAt = Number.NEGATIVE_INFINITY;

  constructor(deps: LogDeps) {
    this.deps = deps;
  }

  /** Appends a receipt that is durable in its session, without waiting. One that fails is added when the log is read. */
  append(session: string, { sequence, hash }: SealedReceipt): void {
    const leaf = logLeafOf(hash);
    this.waiting.push({ type: LOG_APPENDED, key: `${session}#${sequence}`, value: { session, sequence, leaf } });
    this.appending ??= this.appendGroup();
  }

  /** Records that a session with receipts or unsealed turns is removed. */
  recordRemoval(removed: RemovedSession): Promise<void> {
    return this.add({ type: LOG_REMOVED, key: removed.session, value: { ...removed } });
  }

  /** Records a signed checkpoint. */
  recordCheckpoint(note: string): Promise<void> {
    return this.add({ type: LOG_CHECKPOINT, key: 'checkpoint', value: { note } });
  }

  /** Resolves when everything that was appended so far is durable. Rejects with the Fault of the store. */
  async flush(): Promise<void> {
    this.hurry.abort();
    // The second append has what came while the first was under way.
    await this.appending;
    await this.appending;
    this.hurry = new AbortController();
    if (this.opening === undefined) return;
    const stream = await this.opening;
    await stream.flush();
    await this.keepLength(stream);
  }

  /** Reads the whole log; one without an id if there is none. */
  async read(): Promise<LogContents> {
    await this.flush();
    // Read before the log, which grows.
    const keptLength = (await this.deps.lengths?.read(LOG_SESSION)) ?? 0;
    let length = 0;
    const leaves: LogLeaf[] = [];
    const removed: LoggedRemoval[] = [];
    const checkpoints: string[] = [];
    let storeId = '';
    for await (const entries of this.deps.store.journal.read(LOG_SESSION, 0))
      for (const { type, value } of entries) {
        length += 1;
        if (type === LOG_APPENDED) leaves.push(value as unknown as LogLeaf);
        else if (type === LOG_REMOVED) removed.push({ ...(value as unknown as RemovedSession), at: leaves.length });
        else if (type === LOG_CHECKPOINT) checkpoints.push((value as { readonly note: string }).note);
        else if (type === LOG_OPENED) storeId = ownText(value, 'storeId');
      }
    const isWitnessMissing = storeId !== '' && !(await this.hasWitnesses(checkpoints.length > 0));
    return {
      ...{ storeId, leaves, removed, checkpoints, expected: leaves.length },
      ...{ isCutOff: length < keptLength, isWitnessMissing },
    };
  }

  /**
   * Keeps outside of the store that the log has at least this many entries. Called before a checkpoint of them is kept, so
   * that a kept length which is less than the checkpoint says was changed.
   */
  async keepAtLeast(length: number): Promise<void> {
    await this.deps.lengths?.write(LOG_SESSION, length);
  }

  /** True if what is kept outside of the store is there. It is written before the log is begun, or has a checkpoint. */
  private async hasWitnesses(hasCheckpoint: boolean): Promise<boolean> {
    const { witness, lengths } = this.deps;
    const note = await witness?.read();
    const isKept = !hasCheckpoint || witness === undefined || note !== undefined;
    if (!isKept || lengths === undefined) return isKept;
    if (!(await lengths.has(LOG_SESSION)) || !(await lengths.areIntact())) return false;
    // The second line is the number of receipts. The log has another entry, with which it begins.
    const receipts = Number(note?.split('\n', 2)[1] ?? -1);
    // guard: lowered-length-noticed
    return !((await lengths.read(LOG_SESSION)) <= receipts);
  }

  private add(entry: StreamEntry): Promise<void> {
    return this.addAll([entry]);
  }

  private async addAll(entries: readonly StreamEntry[]): Promise<void> {
    const stream = await this.stream();
    await stream.update((state) => entries.filter((entry) => !state.hasRecent(entry))).durable;
  }

  private async appendGroup(): Promise<void> {
    await this.deps.clock.sleep(GROUP_MS, this.hurry.signal).catch(() => undefined);
    await this.addAll(this.waiting.splice(0)).catch(() => undefined);
    if (this.deps.clock.elapsed() - this.keptAt >= KEEP_MS) {
      const keeping = this.stream().then((stream) => this.keepLength(stream));
      await keeping.catch(() => undefined);
    }
    this.appending = this.waiting.length > 0 ? this.appendGroup() : undefined;
  }

  /** Keeps the length of the log outside of the store. What is not durable yet does not count. */
  private async keepLength(stream: SharedStream<LogState>): Promise<void> {
    this.keptAt = this.deps.clock.elapsed();
    const length = await stream.durableLength();
    await this.deps.lengths?.write(LOG_SESSION, length).catch(() => undefined);
  }

  private async stream(): Promise<SharedStream<LogState>> {
    const known = await this.opening?.catch(() => undefined);
    if (known !== undefined && known.failure === undefined) return known;
    const opening = this.open();
    this.opening = opening;
    opening.catch(() => {
      this.opening = undefined;
    });
    return opening;
  }

  private async open(): Promise<SharedStream<LogState>> {
    const { store, clock, ids, witness, lengths } = this.deps;
    const stream = await SharedStream.open({ store, clock, name: LOG_SESSION, create: (saved) => new LogState(saved) });
    const hasCheckpoint = stream.state.storeId === '' && (await witness?.read()) !== undefined;
    // Another process may have begun the log, and kept what the witnesses say, since it was read.
    if (hasCheckpoint) await stream.refresh();
    // guard: lost-log-not-begun-again
    if (hasCheckpoint && stream.state.storeId === '') throw logRewrittenFault();
    if (!(await stream.reaches((await lengths?.read(LOG_SESSION)) ?? 0))) throw logRewrittenFault();
    if (stream.state.storeId === '') await lengths?.write(LOG_SESSION, 0);
    const value = { storeId: ids.id() };
    stream.update(({ storeId }) => (storeId === '' ? [{ type: LOG_OPENED, key: 'log', value }] : []));
    return stream;
  }
}
