/** The desk: what verbs ask of a host, be it the one in this process or the one that owns the store in another. */
import type { Host, InFlight, Message, TurnOptions } from '../../host/host.js';
import type { Replay } from '../../host/replay.js';
import type { Approval, ApprovalAnswer } from '../../protocol/approval.js';
import type { EventEnvelope } from '../../protocol/events.js';
import type { Json } from '../../protocol/json.js';
import type { TraceEvent, TurnResult, TurnStatus } from '../../protocol/trace.js';

/** A turn to run, with the loop by its id: a definition cannot be handed to another process. */
export interface DeskRequest {
  readonly loop: string;
  readonly version?: string;
  readonly input?: unknown;
  readonly sessionId?: string;
  readonly key?: string;
  /** On whose behalf it runs, and who alone may answer its approvals. */
  readonly principal?: string;
  readonly approvers?: readonly string[];
}

/** Who hears of a turn while it runs; handlers of the streaming protocol stay in their process. */
export type Hearing = Omit<TurnOptions, 'stream'>;

export type Decision = 'retry' | 'supply' | 'fail';

export interface Desk {
  run(request: DeskRequest, options?: Hearing): Promise<TurnResult>;
  resume(turnId: string, options?: Hearing): Promise<TurnResult>;
  cancel(turnId: string, reason: string): Promise<boolean>;
  decide(key: string, decision: Decision, by: string, value?: Json): Promise<void>;
  answer(answer: ApprovalAnswer): Promise<Approval>;
  say(message: Message): Promise<void>;
  turns(session?: string): Promise<readonly TurnStatus[]>;
  status(id: string): Promise<readonly TurnStatus[]>;
  trace(turnId: string): Promise<readonly TraceEvent[]>;
  result(turnId: string): Promise<TurnResult | undefined>;
  events(session: string): Promise<readonly EventEnvelope[]>;
  approvals(session?: string): Promise<readonly Approval[]>;
  replay(turnId: string, against?: 'then' | 'now'): Promise<Replay>;
  inFlight(): Promise<readonly InFlight[]>;
}

/** The desk of a host in this process. */
export function hostDesk(host: Host): Desk {
  const { archive } = host;
  return {
    run: (request, options) => host.run<unknown, unknown>(request, options),
    resume: (turnId, options) => host.resume(turnId, options),
    cancel: (turnId, reason) => host.cancel(turnId, reason),
    decide: (key, decision, by, value) => host.decide(key, decision, by, value),
    answer: (answer) => host.answer(answer),
    say: (message) => host.say(message),
    turns: (session) => archive.turns(session),
    status: (id) => archive.status(id),
    trace: (turnId) => archive.trace(turnId),
    result: (turnId) => archive.result(turnId),
    events: (session) => archive.events(session),
    approvals: (session) => archive.approvals(session),
    replay: (turnId, against) => host.replay(turnId, against),
    inFlight: () => host.inFlight(),
  };
}

/** A way to ask: a verb, its arguments by name, and who hears of what happens meanwhile. */
export type Ask = (verb: string, args: object, hearing?: Hearing) => Promise<unknown>;

/** A desk whose every request goes through `ask`. */
export function deskOf(ask: Ask): Desk {
  return {
    run: async (request, hearing) => (await ask('run', { ...request, ...live(hearing) }, hearing)) as TurnResult,
    resume: async (turnId, hearing) => (await ask('resume', { turnId, ...live(hearing) }, hearing)) as TurnResult,
    cancel: async (turnId, reason) => (await ask('cancel', { turnId, reason })) as boolean,
    decide: async (key, decision, by, value) => {
      await ask('decide', { key, decision, by, value });
    },
    answer: async (answer) => (await ask('answer', answer)) as Approval,
    say: async (message) => {
      await ask('say', message);
    },
    turns: async (session) => (await ask('turns', { session })) as readonly TurnStatus[],
    status: async (id) => (await ask('status', { id })) as readonly TurnStatus[],
    trace: async (turnId) => (await ask('trace', { turnId })) as readonly TraceEvent[],
    result: async (turnId) => (await ask('result', { turnId })) as TurnResult | undefined,
    events: async (session) => (await ask('events', { session })) as readonly EventEnvelope[],
    approvals: async (session) => (await ask('approvals', { session })) as readonly Approval[],
    replay: async (turnId, against) => (await ask('replay', { turnId, against })) as Replay,
    inFlight: async () => (await ask('inFlight', {})) as readonly InFlight[],
  };
}

/** Envelopes and pieces are sent only to who asks for them. */
function live({ onEnvelope, onDelta }: Hearing = {}): { live?: true } {
  return onEnvelope === undefined && onDelta === undefined ? {} : { live: true };
}
