/**
 * How the next turn of a hosted loop is derived: which of the things that are due comes first, the projection, and the
 * input that the document or its code makes from it. Pure: what it reads was verified before.
 */
import { Fault, LoopError } from '../../base/errors.js';
import { copyAsJson } from '../../json/value.js';
import { compileMapping, type MappingData } from '../../loops/mapping.js';
import type {
  HostedLoopDocument,
  HostedProjection,
  ProjectedSignal,
  ProjectedTurn,
} from '../../protocol/hosted-loop.js';
import type { Json } from '../../protocol/json.js';
import {
  type EndedTurn,
  type HostedLoopState,
  jsonDigest,
  nextHead,
  type OutgoingHandoff,
  type TurnCause,
  type WaitingSignal,
} from '../../views/hosted-loop.js';
import { isoTime } from '../../views/iso-time.js';
import type { NextInput } from './define-hosted-loop.js';
import { hostedTurnKey } from './hosted-stream.js';

/** What causes the next turn. */
export interface NextCause {
  readonly cause: TurnCause;
  readonly dueAt: number;
  readonly signal?: WaitingSignal;
}

/** Returns what causes the next turn: the oldest thing that is due. Undefined if nothing is due at `now`. */
export function nextCauseOf({ now: state, signals: [signal] }: HostedLoopState, now: number): NextCause | undefined {
  const { plan, retryAt, retryOf } = state;
  // guard: retry-waits-for-its-delay
  if (retryAt !== undefined)
    return retryAt <= now
      ? { cause: 'retry', dueAt: retryAt, ...(retryOf?.signal && { signal: retryOf.signal }) }
      : undefined;
  const isPlanned = plan !== undefined && plan.dueAt <= now;
  if (signal !== undefined && !(isPlanned && plan.dueAt <= signal.at))
    return { cause: signal.handoff === undefined ? 'signal' : 'handoff', dueAt: signal.at, signal };
  // guard: no-turn-early
  return isPlanned ? { cause: 'schedule', dueAt: plan.dueAt } : undefined;
}

/** What a projection is made from, besides the state. */
interface ProjectionParts {
  readonly turn: number;
  readonly signal?: WaitingSignal | undefined;
  /** The verified output of the last turn. */
  readonly output: Json | undefined;
  readonly used: { readonly [counter: string]: number };
}

/** Returns the projection that a turn is derived from. */
export function projectionOf({ now: state }: HostedLoopState, parts: ProjectionParts): HostedProjection {
  const { turn, signal, output, used } = parts;
  const { last, started } = state;
  const { id: loop = '', input = null } = started?.document ?? {};
  // guard: admitted-signal-moves-the-head
  const head =
    signal === undefined ? state.head : nextHead(state.head, { signal: jsonDigest(signal as unknown as Json) });
  return {
    ...{ loop, turn, head, input, used },
    ...(last !== undefined && { last: projectedTurn(loop, last, output) }),
    ...(signal?.handoff !== undefined && { handoff: signal.handoff }),
    ...(signal !== undefined && signal.handoff === undefined && { signal: projectedSignal(signal) }),
  };
}

function projectedTurn(
  loop: string,
  { turn, turnId, status, receipt }: EndedTurn,
  output: Json | undefined,
): ProjectedTurn {
  const key = hostedTurnKey(loop, turn);
  return { key, turnId, status, receipt, ...(output !== undefined && { output }) };
}

function projectedSignal({ id, name, payload, at }: WaitingSignal): ProjectedSignal {
  return { id, name, payload, receivedAt: isoTime(at) };
}

/**
 * Returns the input of a turn. The first one gets `input`, later ones and those that a signal causes what `next` makes,
 * and one that a handoff causes what the handoff says. Throws MAPPING_FAILED if a path of `next` matches nothing.
 */
export function inputOf(document: HostedLoopDocument, next: NextInput | undefined, projection: HostedProjection): Json {
  const { input } = document;
  const { turn, signal, handoff } = projection;
  if (handoff !== undefined) return handoff.input;
  if (turn === 1 && signal === undefined && input !== undefined) return input;
  if (next !== undefined) return (copyAsJson(next(projection), 'the next input') ?? null) as Json;
  if (document.next !== undefined) return compileMapping(document.next, '/next')(mappingData(projection));
  return input ?? signal?.payload ?? null;
}

/** Returns the handoffs that follow a turn with this output. Throws MAPPING_FAILED if a path matches nothing. */
export function handoffsOf(
  { handoffs = [] }: HostedLoopDocument,
  projection: HostedProjection,
  isMet: (rule: NonNullable<HostedLoopDocument['handoffs']>[number]) => boolean,
): readonly OutgoingHandoff[] {
  const receipt = projection.last?.receipt ?? '';
  return handoffs.flatMap((rule, index) => {
    if (!isMet(rule)) return [];
    const { target, grant, reason } = rule;
    const input = compileMapping(rule.input, `/handoffs/${index}/input`)(mappingData(projection));
    return [{ target, receipt, rule: index, input, reason, ...(grant !== undefined && { grant }) }];
  });
}

/** Returns the references of a turn. `receipt:previous` is the turn before, and nothing for the first one. */
export function contextOf({ turn }: HostedLoopDocument, last: EndedTurn | undefined): readonly string[] | undefined {
  const references = turn?.contextSkills?.flatMap((reference) => {
    if (reference !== 'receipt:previous') return [reference];
    return last === undefined ? [] : [`receipt:${last.turnId}`];
  });
  return references?.length === 0 ? undefined : references;
}

function mappingData(projection: HostedProjection): MappingData {
  return projection as unknown as MappingData;
}

/** Returns why no request could be made, from an error of a mapping or of code; throws a Fault. */
export function derivationError(thrown: unknown): string {
  if (thrown instanceof Fault) throw thrown;
  if (thrown instanceof LoopError) return `${thrown.code}: ${thrown.message}`;
  return `EXECUTION_FAILED: ${thrown instanceof Error ? thrown.message : String(thrown)}`;
}
