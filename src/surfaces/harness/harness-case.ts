/** The cases of a harness: what each runs, and what it expects. Types only. */
import type { Grant } from '../../protocol/grant.js';
import type { HostedStopReason } from '../../protocol/hosted-loop.js';
import type { Json } from '../../protocol/json.js';
import type { ReceiptEffectState, ReceiptState } from '../../protocol/receipt.js';
import type { ScriptStep } from '../compose/harness-models.js';

/** The status of a turn. */
export type CaseStatus = 'ok' | 'error' | 'paused' | 'stopped' | 'cancelled';

/** An answer to an approval. */
export interface CaseAnswer {
  /** The loop id of the tool. */
  readonly tool: string;
  readonly approved: boolean;
  /** @default 'harness' */
  readonly by?: string;
  readonly reason?: string;
}

/** A signal that is sent when a turn waits for it. */
export interface CaseSignal {
  readonly name: string;
  readonly payload?: Json;
}

/** What the receipts of a turn must say. */
export interface ReceiptExpectation {
  /** The state of the last receipt. */
  readonly state: ReceiptState;
  /** True if the last receipt ends the turn. */
  readonly final?: boolean;
  /** The effects of all receipts: their number, or each in order. */
  readonly effects?: number | readonly { readonly name: string; readonly state: ReceiptEffectState }[];
  /** The names of the context of all receipts, in order. */
  readonly context?: readonly string[];
  /** The number of receipts of the turn. */
  readonly chain?: number;
  /** The number of answered approvals in all receipts. */
  readonly approvals?: number;
}

/** What the verification of the store of a case must find. */
export interface VerdictExpectation {
  /** @default true */
  readonly valid?: boolean;
  /** @default anything but false */
  readonly complete?: boolean | 'unknown';
}

/** What a case with one turn expects. */
export interface TurnExpectation {
  readonly status: CaseStatus;
  /** The code of the error. */
  readonly code?: string;
  /** A part of the message of the error, or of the reason of the stop. */
  readonly reason?: string;
  /** The whole output. */
  readonly output?: Json;
  /** Members that the output must have, at any depth. */
  readonly outputContains?: Json;
  readonly receipt?: ReceiptExpectation;
  /** The tools that ran, in the order in which they started. */
  readonly toolCalls?: readonly string[];
  readonly verdict?: VerdictExpectation;
}

/** What a case with a hosted loop expects. */
export interface HostedExpectation {
  /** Why the loop stopped. */
  readonly reason: HostedStopReason;
  /** How many turns it had. */
  readonly turns?: number;
  /** The whole output of the last turn. */
  readonly output?: Json;
  /** Members that the output of the last turn must have, at any depth. */
  readonly outputContains?: Json;
  /** The number of receipts of all turns. */
  readonly chain?: number;
  readonly toolCalls?: readonly string[];
  readonly verdict?: VerdictExpectation;
}

/** What every case has. */
interface CaseBase {
  /** Unique in its harness; 1 to 100 letters, digits or _ . - */
  readonly name: string;
  /** The replies of all models. @default only `mock` and `scripted` reply */
  readonly script?: readonly ScriptStep[];
  /** Given in order, each when its approval is pending. */
  readonly approvals: readonly CaseAnswer[];
  /** Sent in order, each when a turn waits for it. */
  readonly signals: readonly CaseSignal[];
  /** When the clock of the case starts, in milliseconds since the epoch. @default now */
  readonly startsAt?: number;
}

/** A case with one turn of a loop. */
export interface TurnCase extends CaseBase {
  readonly kind: 'turn';
  /** `ID` or `ID@VERSION`. */
  readonly loop: string;
  readonly input: Json;
  readonly grant?: Grant;
  readonly expect: TurnExpectation;
}

/** A case with a hosted loop. */
export interface HostedCase extends CaseBase {
  readonly kind: 'hosted';
  /** The absolute path of the file of the hosted loop. */
  readonly file: string;
  readonly expect: HostedExpectation;
}

/** A case of a harness. */
export type HarnessCase = TurnCase | HostedCase;

/** A harness as it is read from its directory. */
export interface Harness {
  /** The path of its file. */
  readonly file: string;
  /** The directory of its definitions; undefined for those of the project. */
  readonly loops: string | undefined;
  /** At least one. */
  readonly cases: readonly HarnessCase[];
}
