/** Refuses loops that name a model without a provider, before a turn of them starts. */
import type { LoopError } from '../base/errors.js';
import type { DefinedLoop } from '../loops/defined-loop.js';
import { unknownBackendError } from '../loops/definition/backends.js';
import type { LinkedLoop } from '../loops/link.js';
import type { ModelProvider } from '../loops/model.js';

type Providers = ReadonlyMap<string, ModelProvider>;

const NO_PROVIDERS: Providers = new Map();

/** The loops that were checked without a finding, and the providers that they were checked against. */
const checkedLoops = new WeakMap<DefinedLoop | LinkedLoop, Providers>();

/**
 * Returns DEFINITION_INVALID if a loop in code, or a loop that it was given as an object, names a backend that the
 * providers do not have; undefined if there is none.
 */
export function unknownModelIn(loop: DefinedLoop, providers: Providers = NO_PROVIDERS): LoopError | undefined {
  if (checkedLoops.get(loop) === providers) return undefined;
  const { definition, innerLoops = [] } = loop;
  const error = unknownBackendError({ definition, definedLoop: loop }, providers.keys(), `"${definition.id}"`);
  const found = error ?? firstError(innerLoops, (inner) => unknownModelIn(inner, providers));
  if (found === undefined) checkedLoops.set(loop, providers);
  return found;
}

/** The same for everything that a linked loop consists of. */
export function unknownModelInLinked(linked: LinkedLoop, providers: Providers = NO_PROVIDERS): LoopError | undefined {
  if (checkedLoops.get(linked) === providers) return undefined;
  const found = firstError(linked.definitions, (part) =>
    unknownBackendError(part, providers.keys(), part.origin.file ?? `"${part.definition.id}"`),
  );
  if (found === undefined) checkedLoops.set(linked, providers);
  return found;
}

function firstError<T>(items: readonly T[], check: (item: T) => LoopError | undefined): LoopError | undefined {
  for (const item of items) {
    const error = check(item);
    if (error !== undefined) return error;
  }
  return undefined;
}
