/** What bodies work with beside their scope: the backends and the tools of the host that runs them, and the turn's occasion. */

import { LoopError } from '../base/errors.js';
import type { Clock } from '../journal/clock.js';
import { RestrictionFlag, RestrictionTable } from '../policy/restrictions.js';
import type { Scope } from '../protocol/body.js';
import type { LiveDelta } from '../protocol/live.js';
import type { BackendRef } from '../protocol/loop.js';
import type { ModelMessage } from '../protocol/model.js';
import type { CallTimes } from '../views/call-results.js';
import type { Watchdog } from './agent/watchdog.js';
import type { ModelProvider } from './model.js';
import type { ToolImplementation } from './tool-implementation.js';

/** What is known of a turn beside its own steps, while it runs. */
export interface TurnContext {
  /** Answers of a model that the turn has already recorded, or all turns of its session together. */
  replyCount(ref: ModelRef, by: 'turn' | 'session'): number;
  /** What earlier turns of the session said. */
  earlierMessages(): readonly ModelMessage[];
  /** When a step of `parent` that ended well ran, and its trace. */
  callTimes(callId: string, parent: string): CallTimes | undefined;
  /** Messages that came while it runs and that nobody has taken. */
  inboxCounts(): { readonly steer: number; readonly queue: number };
  /** Hears what is seen and not kept; undefined when nobody does. */
  readonly onLiveDelta: ((delta: LiveDelta) => void) | undefined;
  readonly restrictions: RestrictionTable;
  /** The same, if anybody watches over the turn. */
  readonly activeRestrictions: RestrictionTable | undefined;
  /** Ends waiting for tools that take too long. */
  readonly watchdog: Watchdog | undefined;
}

/** Of a turn that nobody attends to. */
const EMPTY_TURN_CONTEXT: TurnContext = {
  replyCount: () => 0,
  earlierMessages: () => [],
  callTimes: () => undefined,
  inboxCounts: () => ({ steer: 0, queue: 0 }),
  onLiveDelta: undefined,
  get restrictions() {
    return new RestrictionTable(new RestrictionFlag());
  },
  activeRestrictions: undefined,
  watchdog: undefined,
};

interface LoopServicesDeps {
  readonly providers: ReadonlyMap<string, ModelProvider>;
  readonly implementations: ReadonlyMap<string, ToolImplementation>;
  readonly turnContext: (turn: string) => TurnContext | undefined;
  readonly clock: Clock;
  readonly restrictionFlag: RestrictionFlag;
}

export class LoopServices {
  readonly implementations: ReadonlyMap<string, ToolImplementation>;
  readonly clock: Clock;
  readonly restrictionFlag: RestrictionFlag;
  private readonly deps: LoopServicesDeps;

  constructor(parts: LoopServicesDeps) {
    this.deps = parts;
    this.implementations = parts.implementations;
    this.clock = parts.clock;
    this.restrictionFlag = parts.restrictionFlag;
  }

  /** The same bench, for a turn that is only looked at. */
  withTurnContext(occasion: TurnContext): LoopServices {
    return new LoopServices({ ...this.deps, turnContext: () => occasion });
  }

  /** The backend that a reference means. */
  provider(id: string): ModelProvider {
    const { providers } = this.deps;
    const backend = providers.get(id);
    if (backend !== undefined) return backend;
    const known = [...providers.keys()].join(', ');
    throw new LoopError('BACKEND_FAILED', `There is no backend "${id}"; there are ${known}.`, { backend: id });
  }

  /** A reference that says which model answers, by name. What no backend answers fails when it is asked, not here. */
  toModelRef(ref: BackendRef): ModelRef {
    return { ...ref, model: ref.model ?? this.deps.providers.get(ref.id)?.defaultModel ?? UNKNOWN_MODEL_NAME };
  }

  /** What is known of a turn that runs. */
  turnContext(turn: string): TurnContext {
    return this.deps.turnContext(turn) ?? EMPTY_TURN_CONTEXT;
  }
}

/** What stands for the model of a backend that does not exist. */
const UNKNOWN_MODEL_NAME = 'unknown';

export type ModelRef = BackendRef & { readonly model: string };

/** The bench of the host that runs this scope. */
export function servicesOf(scope: Scope): LoopServices {
  if (scope.context instanceof LoopServices) return scope.context;
  const message = 'This loop needs models or tools: run it through a host, which brings them.';
  throw new LoopError('EXECUTION_FAILED', message);
}

/** The turn that a scope is part of: the root of its path. */
export function turnIdOf({ key }: Scope): string {
  return rootKeyOf(key);
}

/** The root of a path. */
export function rootKeyOf(key: string): string {
  const end = key.indexOf('/');
  return end === -1 ? key : key.slice(0, end);
}
