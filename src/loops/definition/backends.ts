/** Lists the backends that a definition refers to. */
import type { BackendRef, LoopDef } from '../../protocol/loop.js';
import { appendPointer } from './shape.js';

/** A reference to a backend in a definition. */
export interface BackendUse {
  readonly id: string;
  /** A JSON pointer to the id in the definition. */
  readonly path: string;
}

/** Returns the backends that a definition may call: its own, then those of its routes, then its fallbacks. */
export function backendsOf({ kind, backend, composite, policy }: LoopDef): readonly BackendUse[] {
  const uses: BackendUse[] = [];
  const add = (ref: BackendRef | undefined, path: string): void => {
    if (ref !== undefined) uses.push({ id: ref.id, path: `${path}/id` });
  };
  // Tools and composites ignore `backend`.
  if (kind === 'prompt') add(backend, '/backend');
  add(composite?.agent?.backend, '/composite/agent/backend');
  for (const [index, route] of (policy?.routing ?? []).entries())
    add(route.backend, `${appendPointer('/policy/routing', index)}/backend`);
  for (const [index, ref] of (policy?.fallback ?? []).entries()) add(ref, appendPointer('/policy/fallback', index));
  return uses;
}
