/**
 * The body of a prompt loop: renders the template, calls the model and parses the reply against the output schema. If
 * the reply is invalid, the model is called once more with the prompt, the reply and its errors.
 */

import { LoopError } from '../base/errors.js';
import { compileJsonPath } from '../json/path.js';
import type { Validator } from '../json/schema.js';
import { compileTemplate } from '../json/template.js';
import type { Effect, Scope } from '../protocol/body.js';
import type { Json } from '../protocol/json.js';
import type { BackendRef, PolicySpec, PromptSpec, RouteSpec } from '../protocol/loop.js';
import { contextReferencesOf, type LoadedContext, loadContext } from './context/load-context.js';
import type { ModelReply, ModelRequest } from './model.js';
import { modelEffect, withNamedFallbacks } from './model-call/model-effect.js';
import type { ModelObject } from './model-ref.js';
import type { DefinitionOrigin } from './origin.js';
import { parseReply } from './reply.js';
import { type ModelRef, servicesOf } from './services.js';

interface PromptBodyOptions {
  readonly id: string;
  readonly spec: PromptSpec;
  readonly output: Validator;
  readonly backend: BackendRef;
  readonly policy: PolicySpec | undefined;
  readonly origin: DefinitionOrigin;
  /** The digest of a definition from a file, or the version of one in code. Distinguishes definitions with one id. */
  readonly definitionFingerprint: string;
  /** The model objects of a prompt in code. */
  readonly modelObjects?: readonly ModelObject[] | undefined;
}

/** Returns the body of a prompt loop. */
export function promptBody(options: PromptBodyOptions): (input: Json, scope: Scope) => Promise<Json> {
  const { id, spec, output, origin, definitionFingerprint, modelObjects } = options;
  const render = compileTemplate(spec.template, id);
  const selectBackend = compileRoutes(options);
  return async (input, scope) => {
    const services = servicesOf(scope);
    const prompt = render(input);
    const references = contextReferencesOf(scope, spec.contextSkills);
    const context = references && (await loadContext(scope, references, origin));
    const request = buildRequest(options, services.toModelRef(selectBackend(input, prompt)), prompt, context);
    const policy = withNamedFallbacks(options.policy, services);
    const effect = modelEffect(request, {
      services,
      scope,
      origin,
      policy,
      definitionFingerprint,
      replyCountScope: 'turn',
      modelObjects,
      contextMessage: context?.message,
    });
    const reply = (await scope.effect(effect)) as ModelReply;
    const first = parseReply(reply.text, output);
    if (first.isValid) return first.value;
    const repaired = await requestRepair(scope, effect, request, reply.text, output);
    return repaired ?? first.value;
  };
}

function buildRequest(
  { spec, output }: PromptBodyOptions,
  ref: ModelRef,
  prompt: string,
  context: LoadedContext | undefined,
): ModelRequest {
  const { systemPrompt, maxTokens, temperature } = spec;
  const { schema } = output;
  const isStructured = typeof schema === 'object' && schema.type !== 'string' && Object.keys(schema).length > 0;
  return {
    backendId: ref.id,
    model: ref.model,
    ...(ref.options !== undefined && { options: ref.options }),
    promptLength: prompt.length + (systemPrompt?.length ?? 0) + (context?.chars ?? 0),
    ...(systemPrompt !== undefined && { system: systemPrompt }),
    prompt,
    ...(context !== undefined && { contextDigest: context.digest }),
    ...(maxTokens !== undefined && { maxTokens }),
    ...(temperature !== undefined && { temperature }),
    ...(isStructured && { schema }),
  };
}

/**
 * Asks for a corrected reply. Returns undefined if it is invalid too, or if the backend fails, times out or a filter
 * refuses; the first reply is then the output, which the output validation refuses.
 */
async function requestRepair(
  scope: Scope,
  effect: Effect,
  request: ModelRequest,
  answer: string,
  output: Validator,
): Promise<Json | undefined> {
  const value = parseReply(answer, output).value;
  const issues = output.issues(value).map(({ path, message }) => `${path || '/'} ${message}`);
  const { prompt: firstPrompt = '' } = request;
  const prompt =
    `${firstPrompt}\n\nYour last answer was:\n${answer.slice(0, 4000)}\n\n` +
    `It does not fit: ${issues.join('; ').slice(0, 2000)}. Answer again with a JSON value that fits the schema, and nothing else.`;
  const promptLength = request.promptLength + prompt.length - firstPrompt.length;
  try {
    const reply = (await scope.effect({ ...effect, input: { ...request, prompt, promptLength } })) as ModelReply;
    const repaired = parseReply(reply.text, output);
    return repaired.isValid ? repaired.value : undefined;
  } catch (thrown) {
    if (thrown instanceof LoopError && ['BACKEND_FAILED', 'TIMEOUT', 'CONTENT_REFUSED'].includes(thrown.code)) return;
    throw thrown;
  }
}

type SelectBackend = (input: Json, prompt: string) => BackendRef;

/** Returns a function that selects the backend of the first matching route, or else that of the loop. */
function compileRoutes({ id, backend, policy }: PromptBodyOptions): SelectBackend {
  const routes = (policy?.routing ?? []).map((route) => ({
    holds: compileRouteCondition(route, id),
    backend: route.backend,
  }));
  return (input, prompt) => routes.find(({ holds }) => holds(input, prompt))?.backend ?? backend;
}

/** Returns a function that returns true if all conditions of a route hold; a route without conditions always holds. */
function compileRouteCondition({ when }: RouteSpec, id: string): (input: Json, prompt: string) => boolean {
  const conditions = Object.entries(when.input ?? {}).map(([path, value]) => ({
    path: compileJsonPath(path, `${id}: policy.routing`),
    expected: JSON.stringify(value),
  }));
  const lengthOver = when.promptLengthOver ?? -1;
  return (input, prompt) =>
    prompt.length > lengthOver &&
    conditions.every(({ path, expected }) => JSON.stringify(path.findOne(input)) === expected);
}
