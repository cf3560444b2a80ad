/** Lists the backends that a definition refers to, and refuses those that are not configured. */
import { LoopError } from '../../base/errors.js';
import { nearestWord } from '../../base/nearest-word.js';
import type { BackendRef, LoopDef } from '../../protocol/loop.js';
import { findModelObject, type ModelObject } from '../model-ref.js';
import { appendPointer } from './shape.js';

/** A reference to a backend in a definition. */
export interface BackendUse {
  readonly ref: BackendRef;
  /** A JSON pointer to the id in the definition. */
  readonly path: string;
}

/** Returns the backends that a definition may call: its own, then those of its routes, then its fallbacks. */
export function backendsOf({ kind, backend, composite, policy }: LoopDef): readonly BackendUse[] {
  const uses: BackendUse[] = [];
  const add = (ref: BackendRef | undefined, path: string): void => {
    if (ref !== undefined) uses.push({ ref, path: `${path}/id` });
  };
  // Tools and composites ignore `backend`.
  if (kind === 'prompt') add(backend, '/backend');
  add(composite?.agent?.backend, '/composite/agent/backend');
  const plan = composite?.plan;
  // The backend of a workflow comes from its llm, unless the project or a flag chose it.
  if (plan?.backend !== undefined && plan.backend.id === plan.llm?.provider)
    uses.push({ ref: plan.backend, path: '/composite/plan/llm/provider' });
  else add(plan?.backend, '/composite/plan/backend');
  for (const [index, route] of (policy?.routing ?? []).entries())
    add(route.backend, `${appendPointer('/policy/routing', index)}/backend`);
  for (const [index, ref] of (policy?.fallback ?? []).entries()) add(ref, appendPointer('/policy/fallback', index));
  return uses;
}

/** A definition, and the loop in code that it belongs to. */
interface ModelUser {
  readonly definition: LoopDef;
  readonly definedLoop?: { readonly modelObjects?: readonly ModelObject[] | undefined } | undefined;
}

/**
 * Returns DEFINITION_INVALID if a definition names a backend that is not configured, with each such backend in its
 * data; undefined if all are. Model objects need no provider. `where` names the definition in the message.
 */
export function unknownBackendError(
  { definition, definedLoop }: ModelUser,
  providerIds: Iterable<string>,
  where: string,
): LoopError | undefined {
  const uses = backendsOf(definition);
  if (uses.length === 0) return undefined;
  const ids = [...providerIds];
  const flaws = uses
    .filter(({ ref: { id, model } }) => !ids.includes(id) && !findModelObject(definedLoop?.modelObjects, id, model))
    .map(({ ref: { id }, path }) => ({ path, reason: unknownProviderReason(id, ids) }));
  const [first] = flaws;
  if (first === undefined) return undefined;
  return new LoopError('DEFINITION_INVALID', `${where}: ${first.path}: ${first.reason}.`, { ...first, flaws });
}

/** Returns why a provider id cannot be used, with the configured ids and the one that is most likely meant. */
export function unknownProviderReason(id: string, configuredIds: readonly string[]): string {
  const [provider = '', ...rest] = id.split(':');
  const nearest = nearestWord(id, configuredIds);
  const suggestion =
    rest.length > 0 && configuredIds.includes(provider)
      ? `; did you mean the id "${provider}" with the model "${rest.join(':')}"?`
      : nearest === undefined
        ? '.'
        : `; did you mean "${nearest}"?`;
  const configured = configuredIds.length === 0 ? 'none' : configuredIds.join(', ');
  return `"${id}" is not configured${suggestion} Configured: ${configured}`;
}
