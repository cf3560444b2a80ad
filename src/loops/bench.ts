/** What bodies work with beside their scope: the backends and the tools of the host that runs them. */
import { LoopError } from '../journal/errors.js';
import type { Scope } from '../kernel/scope.js';
import type { BackendRef } from '../protocol/loop.js';
import type { Implementation } from './implementation.js';
import type { Backend } from './model.js';

export class Bench {
  readonly backends: ReadonlyMap<string, Backend>;
  readonly implementations: ReadonlyMap<string, Implementation>;
  /** Answers of a model that a turn has already recorded. */
  readonly answered: (turn: string, ref: NamedModel) => number;

  constructor(parts: Pick<Bench, 'backends' | 'implementations' | 'answered'>) {
    this.backends = parts.backends;
    this.implementations = parts.implementations;
    this.answered = parts.answered;
  }

  /** The backend that a reference means. */
  backend(id: string): Backend {
    const backend = this.backends.get(id);
    if (backend !== undefined) return backend;
    const known = [...this.backends.keys()].join(', ');
    throw new LoopError('BACKEND_FAILED', `There is no backend "${id}"; there are ${known}.`, { backend: id });
  }

  /** A reference that says which model answers, by name. */
  named(ref: BackendRef): NamedModel {
    return { ...ref, model: ref.model ?? this.backend(ref.id).defaultModel };
  }
}

export type NamedModel = BackendRef & { readonly model: string };

/** The bench of the host that runs this scope. */
export function benchOf(scope: Scope): Bench {
  if (scope.context instanceof Bench) return scope.context;
  const message = 'This loop needs models or tools: run it through a host, which brings them.';
  throw new LoopError('EXECUTION_FAILED', message);
}
