/** What bodies work with beside their scope: the backends and the tools of the host that runs them, and the turn's occasion. */

import { LoopError } from '../base/errors.js';
import type { Clock } from '../journal/clock.js';
import type { Scope } from '../protocol/body.js';
import type { LiveDelta } from '../protocol/live.js';
import type { BackendRef } from '../protocol/loop.js';
import type { ModelMessage } from '../protocol/model.js';
import type { CallTimes } from '../views/call-results.js';
import { Alert, Watches } from './agent/watch.js';
import type { Watchdog } from './agent/watchdog.js';
import type { Implementation } from './implementation.js';
import type { Backend } from './model.js';

/** What is known of a turn beside its own steps, while it runs. */
export interface Occasion {
  /** Answers of a model that the turn has already recorded, or all turns of its session together. */
  answered(ref: NamedModel, by: 'turn' | 'session'): number;
  /** What earlier turns of the session said. */
  history(): readonly ModelMessage[];
  /** When a step of `parent` that ended well ran, and its trace. */
  result(callId: string, parent: string): CallTimes | undefined;
  /** Messages that came while it runs and that nobody has taken. */
  waiting(): { readonly steer: number; readonly queue: number };
  /** Hears what is seen and not kept; undefined when nobody does. */
  readonly live: ((delta: LiveDelta) => void) | undefined;
  readonly watches: Watches;
  /** The same, if anybody watches over the turn. */
  readonly watching: Watches | undefined;
  /** Ends waiting for tools that take too long. */
  readonly watchdog: Watchdog | undefined;
}

/** Of a turn that nobody attends to. */
const ALONE: Occasion = {
  answered: () => 0,
  history: () => [],
  result: () => undefined,
  waiting: () => ({ steer: 0, queue: 0 }),
  live: undefined,
  get watches() {
    return new Watches(new Alert());
  },
  watching: undefined,
  watchdog: undefined,
};

export interface BenchParts {
  readonly backends: ReadonlyMap<string, Backend>;
  readonly implementations: ReadonlyMap<string, Implementation>;
  readonly occasion: (turn: string) => Occasion | undefined;
  readonly clock: Clock;
  readonly alert: Alert;
}

export class Bench {
  readonly implementations: ReadonlyMap<string, Implementation>;
  readonly clock: Clock;
  readonly alert: Alert;
  private readonly parts: BenchParts;

  constructor(parts: BenchParts) {
    this.parts = parts;
    this.implementations = parts.implementations;
    this.clock = parts.clock;
    this.alert = parts.alert;
  }

  /** The same bench, for a turn that is only looked at. */
  attending(occasion: Occasion): Bench {
    return new Bench({ ...this.parts, occasion: () => occasion });
  }

  /** The backend that a reference means. */
  backend(id: string): Backend {
    const { backends } = this.parts;
    const backend = backends.get(id);
    if (backend !== undefined) return backend;
    const known = [...backends.keys()].join(', ');
    throw new LoopError('BACKEND_FAILED', `There is no backend "${id}"; there are ${known}.`, { backend: id });
  }

  /** A reference that says which model answers, by name. What no backend answers fails when it is asked, not here. */
  named(ref: BackendRef): NamedModel {
    return { ...ref, model: ref.model ?? this.parts.backends.get(ref.id)?.defaultModel ?? UNKNOWN_MODEL };
  }

  /** What is known of a turn that runs. */
  occasion(turn: string): Occasion {
    return this.parts.occasion(turn) ?? ALONE;
  }
}

/** What stands for the model of a backend that does not exist. */
const UNKNOWN_MODEL = 'unknown';

export type NamedModel = BackendRef & { readonly model: string };

/** The bench of the host that runs this scope. */
export function benchOf(scope: Scope): Bench {
  if (scope.context instanceof Bench) return scope.context;
  const message = 'This loop needs models or tools: run it through a host, which brings them.';
  throw new LoopError('EXECUTION_FAILED', message);
}

/** The turn that a scope is part of: the root of its path. */
export function turnOf({ key }: Scope): string {
  return rootOf(key);
}

/** The root of a path. */
export function rootOf(key: string): string {
  const end = key.indexOf('/');
  return end === -1 ? key : key.slice(0, end);
}
