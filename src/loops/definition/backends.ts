/** The backends that a definition names, and where. */
import type { BackendRef, LoopDef } from '../../protocol/loop.js';
import { appendPointer } from './shape.js';

export interface BackendUse {
  readonly id: string;
  /** A JSON pointer into the definition. */
  readonly path: string;
}

/** All backends that a definition may ask, in the order in which it names them. */
export function backendsOf({ kind, backend, composite, policy }: LoopDef): readonly BackendUse[] {
  const named: BackendUse[] = [];
  const add = (ref: BackendRef | undefined, path: string): void => {
    if (ref !== undefined) named.push({ id: ref.id, path: `${path}/id` });
  };
  // A tool or a composite asks no model itself.
  if (kind === 'prompt') add(backend, '/backend');
  add(composite?.agent?.backend, '/composite/agent/backend');
  for (const [index, route] of (policy?.routing ?? []).entries())
    add(route.backend, `${appendPointer('/policy/routing', index)}/backend`);
  for (const [index, ref] of (policy?.fallback ?? []).entries()) add(ref, appendPointer('/policy/fallback', index));
  return named;
}
