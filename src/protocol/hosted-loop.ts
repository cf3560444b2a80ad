/**
 * Hosted loops: a loop whose turns are run one after another, only while a stop policy allows it. The document says when
 * turns are due, what each one may do, and when the last one was. Types only.
 */
import type { Grant } from './grant.js';
import type { Json } from './json.js';
import type { JsonSchema } from './loop.js';

/** Due times by a cron expression in a time zone. */
export interface CronSchedule {
  /** Five fields, or six with seconds first. */
  readonly cron: string;
  /** An IANA time zone, such as `Europe/Berlin`. */
  readonly zone: string;
}

/** Due times at a fixed distance, counted from the start of the hosted loop. */
export interface IntervalSchedule {
  readonly everyMs: number;
}

/** A pause between the end of a turn and the next one. */
export interface DelaySchedule {
  readonly delayMs: number;
}

/** When turns are due. */
export type HostedSchedule = CronSchedule | IntervalSchedule | DelaySchedule;

/** What happens to a due time at which the turn before has not ended: it is dropped, or one turn is run afterwards. */
export type OverlapRule = 'skip' | 'queue-one';

/** What happens to due times at which no worker ran: they are dropped, one turn is run for all, or one for each. */
export type CatchUpRule = 'none' | 'one' | 'all';

/** How the sender of a signal proves who it is: HMAC-SHA256 over id, time and body, as in Standard Webhooks. */
export interface SignalVerification {
  readonly method: 'hmac-sha256';
  /** Where the secret is: `env:NAME`. */
  readonly secret: string;
  /**
   * How far the time of a delivery may be from now, in milliseconds.
   * @default 300_000
   */
  readonly windowMs?: number;
}

/** A signal that a hosted loop accepts. */
export interface HostedSignal {
  /** The JSON Schema of its payload. */
  readonly schema: JsonSchema;
  /** @default only the operator may send it */
  readonly verify?: SignalVerification;
}

/** A value in the output of a turn, by a JSONPath that selects at most one. */
export interface ConfidenceStop {
  readonly path: string;
  /** The loop stops when the number is at least this. */
  readonly atLeast: number;
}

/** A value in the output of a turn, and what it must equal. */
export interface TerminalStop {
  readonly path: string;
  readonly equals: Json;
}

/** When a hosted loop stops. Every condition can only stop it; none can let it go on. */
export interface StopPolicy {
  /** How many turns it may have. */
  readonly maxTurns: number;
  /** An ISO time from which no turn starts and nothing of a turn that runs starts. */
  readonly deadline?: string;
  /**
   * Which approvals stop it: `denied` when an approval was denied or expired, `pending` also when one is needed, `ignore`
   * none.
   * @default 'denied'
   */
  readonly approval?: 'denied' | 'pending' | 'ignore';
  readonly confidence?: ConfidenceStop;
  readonly terminal?: TerminalStop;
  /** How many turns in a row may end without an output that differs from that of the turn before. */
  readonly noProgress?: number;
}

/** Members of a grant that narrow the grant of the hosted loop for one turn. What is absent is inherited. */
export type TurnGrant = Partial<Omit<Grant, 'id'>>;

/** What one turn of a hosted loop gets. */
export interface HostedTurnSettings {
  /** Narrows the grant of the loop for a single turn. */
  readonly grant?: TurnGrant;
  /** References that are loaded into the prompts of the turn's own loop; `receipt:previous` is the turn before. */
  readonly contextSkills?: readonly string[];
  /**
   * What an agent sees of earlier turns: nothing, or their messages.
   * @default 'none'
   */
  readonly history?: 'none' | 'session';
}

/** How often a failed turn is followed by another one. */
export interface TurnRetry {
  /** How many turns in a row may fail before the loop stops. */
  readonly maxFailures: number;
  /** @default 0 */
  readonly delayMs?: number;
}

/** Another hosted loop that continues when a turn has a certain output. */
export interface HandoffRule {
  /** The id of the other hosted loop. */
  readonly target: string;
  /** @default after every successful turn */
  readonly when?: TerminalStop;
  /** A mapping of the projection to the input of the other loop's turn. */
  readonly input: string | { readonly [member: string]: string };
  /** Narrows what the turn may do, below the grants of both loops. */
  readonly grant?: TurnGrant;
  readonly reason: string;
}

/** A hosted loop as a file describes it. */
export interface HostedLoopDocument {
  /** 1 to 60 letters, digits or _ . - */
  readonly id: string;
  /** The id of the loop that each turn runs. */
  readonly loop: string;
  /** The input of the first turn, and of the others if there is no `next`. */
  readonly input?: Json;
  /** A mapping of the projection to the input of the next turn. */
  readonly next?: string | { readonly [member: string]: string };
  /** The authority of all turns together. */
  readonly grant: Grant;
  readonly turn?: HostedTurnSettings;
  readonly stop: StopPolicy;
  /** @default a turn follows the one before at once; with `signals`, turns follow signals */
  readonly schedule?: HostedSchedule;
  /** @default 'skip' */
  readonly overlap?: OverlapRule;
  /** @default 'one' */
  readonly catchUp?: CatchUpRule;
  readonly signals?: { readonly [name: string]: HostedSignal };
  /** @default a failed turn stops the loop */
  readonly retry?: TurnRetry;
  readonly handoffs?: readonly HandoffRule[];
  /** The ids of the hosted loops whose handoffs are accepted. @default none */
  readonly acceptsHandoffsFrom?: readonly string[];
}

/** Why a hosted loop stopped. */
export type HostedStopReason =
  | 'max_turns'
  | 'budget'
  | 'deadline'
  | 'approval'
  | 'confidence'
  | 'terminal'
  | 'no_progress'
  | 'stale_projection'
  | 'missing_receipt'
  | 'turn_failed'
  | 'refused'
  | 'stopped_by';

/** What its operator can repair before a hosted loop goes on: it is paused until then. */
export type HostedPauseReason = 'price' | 'grant' | 'definition';

/** What an agent of a turn sees of the turns before. A type, because an interface is not JSON. */
export type SeenHistory = {
  readonly messages: number;
  /** The size of their canonical JSON. */
  readonly bytes: number;
  /** The SHA-256 digest of their canonical JSON, in base64url. */
  readonly digest: string;
};

/** What a turn of a hosted loop was requested from. It is recorded before the turn starts, and sealed with it. */
export interface HostedTurnOrigin {
  readonly loop: string;
  /** The number of the turn: 1 for the first. */
  readonly turn: number;
  /** The head of the projection that the request was made from. */
  readonly head: string;
  /** The final receipt of the turn before; absent for the first turn. */
  readonly previous?: string;
  /** The delivery id of the signal, or the receipt of the handoff, that caused the turn. */
  readonly cause?: string;
  /** The receipt of the turn that handed off to this one. */
  readonly handoff?: string;
  /** Narrows the grant for this turn. */
  readonly grants?: readonly TurnGrant[];
  /** References that are loaded into the prompts of the turn's own loop. */
  readonly contextSkills?: readonly string[];
}

/** A signal as a projection shows it. */
export interface ProjectedSignal {
  readonly id: string;
  readonly name: string;
  readonly payload: Json;
  /** When it was received, as an ISO time. */
  readonly receivedAt: string;
}

/** The last turn as a projection shows it. */
export interface ProjectedTurn {
  /** `LOOP#n`. */
  readonly key: string;
  readonly turnId: string;
  readonly status: string;
  /** Of a successful turn. */
  readonly output?: Json;
  readonly receipt: string;
}

/** What a handoff asks of its target. */
export interface ProjectedHandoff {
  readonly from: string;
  /** The receipt of the turn that made it. */
  readonly receipt: string;
  readonly input: Json;
  readonly reason: string;
}

/** What the next turn of a hosted loop is derived from: only receipts and admitted events. */
export interface HostedProjection {
  readonly loop: string;
  /** The number of the turn that is derived: 1 for the first. */
  readonly turn: number;
  /** The digest of what the projection is made from: the start, the receipts so far, and the signals that were admitted. */
  readonly head: string;
  /** The `input` of the document; null if it has none. */
  readonly input: Json;
  /** Absent before the first turn has ended. */
  readonly last?: ProjectedTurn;
  /** The signal that causes the turn. */
  readonly signal?: ProjectedSignal;
  /** The handoff that causes the turn. */
  readonly handoff?: ProjectedHandoff;
  /** What the turns have used of the grant so far. */
  readonly used: { readonly [counter: string]: number };
}

/** The state of a hosted loop. */
export interface HostedLoopStatus {
  readonly loop: string;
  readonly status: 'running' | 'waiting' | 'paused' | 'stopped';
  /**
   * Why it stopped, what it waits for, or what has to be repaired before it is resumed. `damaged`: the store has to be
   * repaired before anything is known of it. Absent if a person paused it.
   */
  readonly reason?:
    | HostedStopReason
    | HostedPauseReason
    | 'schedule'
    | 'signal'
    | 'approval'
    | 'turn'
    | 'retry'
    | 'damaged';
  readonly message?: string;
  /** How many turns it has had, an open one included. */
  readonly turns: number;
  /** When the next turn is due, as an ISO time. */
  readonly nextAt?: string;
  readonly projection: {
    readonly head: string;
    /** True if the projection has everything that happened: the last receipt is there and is valid, and no turn is open. */
    readonly fresh: boolean;
    /** When the newest event in it happened, as an ISO time. */
    readonly asOf?: string;
  };
  readonly lastReceipt?: string;
  /** The turn that is open. */
  readonly turnId?: string;
  /** How many signals wait for a turn. */
  readonly signals: number;
}

/** A signal to deliver to a hosted loop. */
export interface HostedSignalDelivery {
  readonly loop: string;
  readonly name: string;
  readonly payload?: Json;
  /** The delivery id: a second delivery with it has no effect. */
  readonly id: string;
}

/** What became of a delivery: it was new, or had been received before. */
export type SignalReceipt = 'accepted' | 'duplicate';
