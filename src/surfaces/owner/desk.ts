/** The desk: what verbs ask of a host, be it the one in this process or the one that owns the store in another. */
import type { Host, InFlight, TurnOptions } from '../../host/host.js';
import type { Replay } from '../../host/replay.js';
import type { Json } from '../../protocol/json.js';
import type { TraceEvent, TurnResult, TurnStatus } from '../../protocol/trace.js';

/** A turn to run, with the loop by its id: a definition cannot be handed to another process. */
export interface DeskRequest {
  readonly loop: string;
  readonly version?: string;
  readonly input?: unknown;
  readonly sessionId?: string;
  readonly key?: string;
}

export type Decision = 'retry' | 'supply' | 'fail';

export interface Desk {
  run(request: DeskRequest, options?: TurnOptions): Promise<TurnResult>;
  resume(turnId: string, options?: TurnOptions): Promise<TurnResult>;
  cancel(turnId: string, reason: string): Promise<boolean>;
  decide(key: string, decision: Decision, by: string, value?: Json): Promise<void>;
  turns(session?: string): Promise<readonly TurnStatus[]>;
  status(id: string): Promise<readonly TurnStatus[]>;
  trace(turnId: string): Promise<readonly TraceEvent[]>;
  result(turnId: string): Promise<TurnResult | undefined>;
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
    turns: (session) => archive.turns(session),
    status: (id) => archive.status(id),
    trace: (turnId) => archive.trace(turnId),
    result: (turnId) => archive.result(turnId),
    replay: (turnId, against) => host.replay(turnId, against),
    inFlight: () => host.inFlight(),
  };
}

/** A way to ask: a verb, its arguments by name, and who hears of events. */
export type Ask = (verb: string, args: object, onEvent?: (event: TraceEvent) => void) => Promise<unknown>;

/** A desk whose every request goes through `ask`. */
export function deskOf(ask: Ask): Desk {
  return {
    run: async (request, { onEvent } = {}) => (await ask('run', request, onEvent)) as TurnResult,
    resume: async (turnId, { onEvent } = {}) => (await ask('resume', { turnId }, onEvent)) as TurnResult,
    cancel: async (turnId, reason) => (await ask('cancel', { turnId, reason })) as boolean,
    decide: async (key, decision, by, value) => {
      await ask('decide', { key, decision, by, value });
    },
    turns: async (session) => (await ask('turns', { session })) as readonly TurnStatus[],
    status: async (id) => (await ask('status', { id })) as readonly TurnStatus[],
    trace: async (turnId) => (await ask('trace', { turnId })) as readonly TraceEvent[],
    result: async (turnId) => (await ask('result', { turnId })) as TurnResult | undefined,
    replay: async (turnId, against) => (await ask('replay', { turnId, against })) as Replay,
    inFlight: async () => (await ask('inFlight', {})) as readonly InFlight[],
  };
}
