/** The options of a host and the callbacks of one turn. */
import type { Clock, Ids } from '../journal/clock.js';
import type { Store } from '../journal/store.js';
import type { ContextFiles, ContextSources, SummarizeReceipts } from '../loops/context/context-source.js';
import type { ModelProvider } from '../loops/model.js';
import type { Registry } from '../loops/registry.js';
import type { ToolImplementation } from '../loops/tool-implementation.js';
import type { PriceOf } from '../policy/prices.js';
import type { EventEnvelope } from '../protocol/events.js';
import type { Grant } from '../protocol/grant.js';
import type { LiveDelta } from '../protocol/live.js';
import type { KeyRole, KeysDocument, NoteSigner } from '../protocol/receipt.js';
import type { TimerMode } from '../protocol/session.js';
import type { StreamHandlers } from '../protocol/streaming.js';
import type { TraceEvent } from '../protocol/trace.js';
import { summarizeReceipts } from '../views/receipt/summary.js';
import { RECEIPT_SEALED } from '../views/turns.js';
import { readSession } from './read-session.js';
import { sessionIdOf } from './turn-result.js';

/** What a host needs to run turns. */
export interface HostOptions {
  /** Holds the journals of all sessions. */
  readonly store: Store;
  /** Supplies the time of entries, timers and timeouts. */
  readonly clock: Clock;
  /** Supplies the ids of new sessions, turns and messages. */
  readonly ids: Ids;
  /** The loops that the host can run. A loop that is passed to `Host.run` is added to it. */
  readonly registry: Registry;
  /**
   * Model providers by the id that definitions use.
   * @default no providers; a loop can then use only model objects
   */
  readonly providers?: ReadonlyMap<string, ModelProvider>;
  /**
   * Opens every model in place of its provider, also one that code gives as a model object. For tests.
   * @default every model is opened by its provider
   */
  readonly modelOverride?: ModelProvider | undefined;
  /**
   * Tool implementations by scheme, such as `exec` or `http`.
   * @default no implementations; loops written in code need none
   */
  readonly implementations?: ReadonlyMap<string, ToolImplementation>;
  /**
   * Returns true if a file exists, for the condition `file_exists` of plans.
   * @default plans with this condition fail
   */
  readonly fileExists?: (path: string) => Promise<boolean>;
  /**
   * The keys that receipts are signed with.
   * @default turns have no receipts
   */
  readonly receiptKeys?: ReceiptKeys;
  /**
   * Keeps the newest checkpoint of the log of receipts outside of the store.
   * @default nothing is kept, so a log that was removed or made again is not noticed
   */
  readonly logWitness?: LogWitness;
  /**
   * Keeps the lengths of the log of receipts and of the ledgers of grants outside of the store.
   * @default nothing is kept, so a log or a ledger that was cut off is not noticed
   */
  readonly lengthWitness?: LengthWitness;
  /**
   * Returns the price of a model, for grants that limit what models cost.
   * @default no prices; such grants permit no model
   */
  readonly priceOf?: PriceOf;
  /**
   * Reads the files that `contextSkills` of prompts and agents name.
   * @default loops that name files fail with CONTEXT_REFUSED
   */
  readonly contextFiles?: ContextFiles;
  /**
   * Returns a summary of the receipts of a turn, for `receipt:TURN` in `contextSkills`; undefined if it has none.
   * @default the state, the loop and the number of effects of each stored receipt; without `receiptKeys`, such references
   * fail with CONTEXT_REFUSED
   */
  readonly summarizeReceipts?: SummarizeReceipts;
  /**
   * Returns true if a recorded definition may run code from this directory, which is undefined for a definition without
   * a file. It is not called for a recorded definition that equals the registered one from the same directory; such a
   * definition has the trust of the registered one. A turn that needs trust continues only if all of its parts have it.
   * @default recorded definitions run no code of a directory, and turns continue as those of this program
   */
  readonly trusts?: (directory: string | undefined) => boolean;
  /**
   * The directory of the journal, if it may come from others. Turns that it has continue only if they need no
   * trust, because it has their inputs too.
   * @default the journal is the operator's
   */
  readonly untrustedJournal?: string | undefined;
  /**
   * The maximum depth of nested calls in a turn.
   * @default 2000
   */
  readonly maxDepth?: number;
  /**
   * How long an approval can be answered, in milliseconds.
   * @default 2_592_000_000 (30 days)
   */
  readonly approvalMs?: number;
  /**
   * Your id of the code that this process runs, such as a commit. It is recorded with each turn. Turns of another build
   * continue, and `inFlightTurns` reports them; their approvals and standing grants are not used: the approvals are
   * requested again.
   * @default no build; the definitions alone identify the code
   */
  readonly build?: string;
  /**
   * Redacts the stack of an error before it is journaled and reported. Return undefined to omit it, as in
   * `() => undefined`. It may be called again with a text that it returned.
   * @default records stacks unchanged
   */
  readonly errorStacks?: (stack: string) => string | undefined;
}

/** Returns where a host with these options reads context. */
export function contextSourcesOf(options: HostOptions): ContextSources {
  const { contextFiles: files, receiptKeys, store } = options;
  const stored = async (turnId: string): Promise<string | undefined> =>
    summarizeReceipts(turnId, await readSession(store, sessionIdOf(turnId), ({ type }) => type === RECEIPT_SEALED));
  return { files, summarizeReceipts: options.summarizeReceipts ?? (receiptKeys && stored) };
}

/** The keys of a host. */
export interface ReceiptKeys {
  /** Returns the signer of the current key of a role. The key is created on first use. */
  signer(role: KeyRole): Promise<NoteSigner>;
  /** Returns the public keys. */
  list(): Promise<KeysDocument>;
}

/** Keeps the newest checkpoint of the log of a store where who changes the store cannot change it. */
export interface LogWitness {
  /** Returns the newest checkpoint; undefined if none was made. */
  read(): Promise<string | undefined>;
  /** Keeps a checkpoint, unless one of a longer log is kept. */
  write(note: string): Promise<void>;
}

/** Keeps how many entries a shared stream had, where who changes the store cannot change it. */
export interface LengthWitness {
  /** Returns the length that was kept; 0 if none was. */
  read(stream: string): Promise<number>;
  /** True if a length, which may be 0, was kept. */
  has(stream: string): Promise<boolean>;
  /** True if each length that was kept can be read. */
  areIntact(): Promise<boolean>;
  /** Keeps a length, unless a greater one is kept. */
  write(stream: string, length: number): Promise<void>;
}

/** Throws a TypeError if the build is not text of 1 to 200 characters. */
export function assertBuild(build: string | undefined): void {
  if (build === undefined || (typeof build === 'string' && build.trim() !== '' && build.length <= 200)) return;
  throw new TypeError('The build of a host is text of 1 to 200 characters, such as a commit id.');
}

/** Callbacks for one turn. Errors that they throw are ignored, except those of `onTurn`, which reject the call. */
export interface TurnOptions {
  /** The grant under which a turn that stopped at its grant continues. */
  readonly grant?: Grant;
  /** Receives the id of the turn before the turn starts or continues. */
  readonly onTurn?: (turnId: string) => void;
  /** Receives the id of the turn once its start is durable. Not called while another process runs the turn. */
  readonly onStarted?: (turnId: string) => void;
  /**
   * What the turn does when nothing of it runs: wait for its timers, or pause.
   * @default 10000: it waits for a timer that is due within ten seconds, and pauses otherwise
   */
  readonly timers?: TimerMode;
  /** Receives every event of the trace in order. A resumed turn delivers its trace from the start. */
  readonly onEvent?: (event: TraceEvent) => void;
  /** Receives each envelope (event with an id) of the session when it is created, and again when it is replaced. */
  readonly onEnvelope?: (envelope: EventEnvelope) => void;
  /** Receives pieces of messages and of tool output while they are streamed. Deltas are not journaled. */
  readonly onDelta?: (delta: LiveDelta) => void;
  /**
   * Handlers of the streaming protocol, called one after another. The result is returned after the last one has
   * finished. They are not called for the part of a turn that another process runs.
   */
  readonly stream?: StreamHandlers;
}
