/**
 * Models in code. Wherever code names a model, it may give a model object of the AI SDK, a text `PROVIDER` or
 * `PROVIDER:MODEL`, or a reference `{ id, model?, options? }`. Definitions and journals contain only references, so a
 * model object gets one, and its loop keeps the object next to its definition.
 */

import { LoopError } from '../base/errors.js';
import { isObject } from '../base/own-property.js';
import type { BackendRef, PolicySpec, RouteSpec } from '../protocol/loop.js';
import type { Model } from '../protocol/model.js';

/**
 * A model in code: a model object of the AI SDK, a text `PROVIDER` or `PROVIDER:MODEL`, or a reference.
 *
 * @example
 * ```ts
 * const models: ModelOption[] = [
 *   anthropic('claude-sonnet-4-5'),
 *   'anthropic', // the default model of the provider
 *   'anthropic:claude-sonnet-4-5', // the first colon separates provider and model
 *   { id: 'openai-compatible', model: 'qwen3:8b', options: { baseURL: 'http://127.0.0.1:11434/v1' } },
 * ];
 * ```
 */
export type ModelOption = Model | BackendRef | string;

/** A routing rule in code: the first rule whose conditions all hold selects the model of a prompt. */
export interface RouteOption extends Pick<RouteSpec, 'when'> {
  /** The model of prompts for which the conditions hold. */
  readonly model: ModelOption;
}

/** The policy of a loop in code. It differs from a policy in JSON only in how it names models. */
export interface PolicyOption extends Omit<PolicySpec, 'routing' | 'fallback'> {
  /** Selects the model of a prompt. */
  readonly routing?: readonly RouteOption[];
  /** The models that are tried, in order, after a model failed or timed out. */
  readonly fallback?: readonly ModelOption[];
}

/** A model object of a loop in code, with the reference that stands for it in the definition and in requests. */
export interface ModelObject {
  readonly id: string;
  readonly model: string;
  readonly object: Model;
}

/** The models of a loop in code: references for its definition, and the objects that some of them stand for. */
interface LoopModels {
  readonly backend: BackendRef | undefined;
  readonly policy: PolicySpec | undefined;
  readonly modelObjects: readonly ModelObject[] | undefined;
}

/** The ids of the providers that come with Rondo. */
export const builtInProviderIds = ['anthropic', 'openai', 'openai-compatible', 'scripted', 'mock'] as const;

const ACCEPTED = 'a model object of the AI SDK, "PROVIDER", "PROVIDER:MODEL" or { id, model?, options? }';

/** True if the value has the functions of a model object. */
export function isModel(value: unknown): value is Model {
  const { doStream, doGenerate } = (value ?? {}) as Partial<Model>;
  return typeof doStream === 'function' && typeof doGenerate === 'function';
}

/** Parses `PROVIDER` or `PROVIDER:MODEL`. The first colon separates them. Returns undefined if a part is empty. */
export function parseModelText(text: string): BackendRef | undefined {
  const colon = text.indexOf(':');
  const [id, model] = colon === -1 ? [text] : [text.slice(0, colon), text.slice(colon + 1)];
  if (id?.trim() === '' || id === undefined || model?.trim() === '') return undefined;
  return model === undefined ? { id } : { id, model };
}

/** Returns what a prompt without a model is missing: how to name one, and the providers. */
export function missingModelReason(providerIds: readonly string[] = builtInProviderIds): string {
  return (
    `it needs a model: ${ACCEPTED}, such as "anthropic:claude-sonnet-4-5". ` +
    `Providers: ${providerIds.join(', ')}; "mock" answers without a model, for tests`
  );
}

/**
 * Converts the models of a loop in code to references. Throws DEFINITION_INVALID if one cannot be used; `where` begins
 * the message. Lists and routes of a wrong shape are left for the check of the definition.
 */
export function resolveModels(
  where: string,
  model: ModelOption | undefined,
  policy: PolicyOption | undefined,
): LoopModels {
  const { routing, fallback } = policy ?? {};
  const routes: readonly RouteOption[] = Array.isArray(routing) ? routing : [];
  const fallbacks: readonly ModelOption[] = Array.isArray(fallback) ? fallback : [];
  assertRoutesNameModels(where, routes);
  const options: [place: string, option: unknown][] = [
    ...(model === undefined ? [] : [['model', model] as [string, unknown]]),
    ...routes.map((route, index): [string, unknown] => [`policy.routing[${index}].model`, route?.model]),
    ...fallbacks.map((option, index): [string, unknown] => [`policy.fallback[${index}]`, option]),
  ];
  const { refs, modelObjects } = referencesTo(options, where);
  const backend = model === undefined ? undefined : refs.shift();
  const routed = routes.map(({ model: _, ...route }) => ({ ...route, backend: refs.shift() }) as RouteSpec);
  const resolved = {
    ...policy,
    ...(Array.isArray(routing) && { routing: routed }),
    ...(Array.isArray(fallback) && { fallback: refs }),
  };
  return { backend, policy: policy === undefined ? undefined : (resolved as PolicySpec), modelObjects };
}

function assertRoutesNameModels(where: string, routes: readonly unknown[]): void {
  const wrong = routes.findIndex((route) => !isObject(route) || Object.hasOwn(route, 'backend'));
  if (wrong === -1) return;
  const path = `/policy/routing/${wrong}`;
  throw invalidModelError(where, `policy.routing[${wrong}] must be { when, model } in code`, path);
}

/**
 * Returns a reference to each model. The references to two different objects differ, even if provider and name are the
 * same, and none equals a reference that was given as such: the provider of a later one gets a number.
 */
function referencesTo(options: readonly [place: string, option: unknown][], where: string) {
  const given = options.map(([place, option]) => (isModel(option) ? undefined : toReference(option, place, where)));
  const namedIds = new Set(given.flatMap((ref) => ref?.id ?? []));
  const modelObjects: ModelObject[] = [];
  const refs = options.map(([, option], index): BackendRef | undefined => {
    const ref = given[index];
    if (ref !== undefined) return ref;
    const object = option as Model;
    const known = modelObjects.find((other) => other.object === object);
    if (known !== undefined) return { id: known.id, model: known.model };
    const { provider, modelId: model } = object;
    const isTaken = (id: string): boolean =>
      namedIds.has(id) || modelObjects.some((other) => other.id === id && other.model === model);
    let id = provider;
    for (let number = 2; isTaken(id); number++) id = `${provider}#${number}`;
    modelObjects.push({ id, model, object });
    return { id, model };
  });
  return { refs, modelObjects: modelObjects.length === 0 ? undefined : modelObjects };
}

function toReference(option: unknown, place: string, where: string): BackendRef {
  const ref = typeof option === 'string' ? parseModelText(option) : option;
  if (isObject(ref) && typeof ref.id === 'string') return ref as unknown as BackendRef;
  const shown = typeof option === 'string' ? `, not ${JSON.stringify(option.slice(0, 100))}` : '';
  throw invalidModelError(where, `${place} must be ${ACCEPTED}${shown}`, `/${place.replace(/[.[\]]+/g, '/')}`);
}

function invalidModelError(where: string, reason: string, path: string): LoopError {
  return new LoopError('DEFINITION_INVALID', `${where}: ${reason}.`, { path, reason });
}

/** Returns the object that a request refers to; undefined if its model is opened by a provider. */
export function findModelObject(
  objects: readonly ModelObject[] | undefined,
  id: string,
  model: string | undefined,
): Model | undefined {
  if (objects === undefined) return undefined;
  for (let index = 0; index < objects.length; index++) {
    const item = objects[index] as ModelObject;
    if (item.id === id && item.model === model) return item.object;
  }
  return undefined;
}
