/**
 * The body of a prompt loop: render the template, ask the model, read the reply against the output schema. A reply that
 * does not fit is told to the model once, with what is wrong with it; what it answers then is final.
 */

import { LoopError } from '../base/errors.js';
import { compileJsonPath } from '../json/path.js';
import type { Validator } from '../json/schema.js';
import { compileTemplate } from '../json/template.js';
import type { Effect, Scope } from '../protocol/body.js';
import type { Json } from '../protocol/json.js';
import type { BackendRef, PolicySpec, PromptSpec, RouteSpec } from '../protocol/loop.js';
import type { ModelReply, ModelRequest } from './model.js';
import { modelEffect, withNamedFallbacks } from './model-call/model-effect.js';
import type { DefinitionOrigin } from './origin.js';
import { parseReply } from './reply.js';
import { type ModelRef, servicesOf } from './services.js';

/** What a prompt body is made of. */
interface PromptBodyOptions {
  readonly id: string;
  readonly spec: PromptSpec;
  readonly output: Validator;
  readonly backend: BackendRef | undefined;
  readonly policy: PolicySpec | undefined;
  readonly origin: DefinitionOrigin;
  /** Tells this definition from others of its id. */
  readonly definitionFingerprint: string;
}

/** What answers when a definition names no backend. */
const DEFAULT_BACKEND: BackendRef = { id: 'mock' };

export function promptBody(parts: PromptBodyOptions): (input: Json, scope: Scope) => Promise<Json> {
  const { id, spec, output, origin, definitionFingerprint } = parts;
  const render = compileTemplate(spec.template, id);
  const route = compileRoutes(parts);
  return async (input, scope) => {
    const bench = servicesOf(scope);
    const prompt = render(input);
    const request = buildRequest(parts, bench.toModelRef(route(input, prompt)), prompt);
    const policy = withNamedFallbacks(parts.policy, bench);
    const effect = modelEffect(request, {
      services: bench,
      scope,
      origin,
      policy,
      definitionFingerprint,
      replyCountScope: 'turn',
    });
    const reply = (await scope.effect(effect)) as ModelReply;
    const first = parseReply(reply.text, output);
    if (first.isValid) return first.value;
    const second = await requestRepair(scope, effect, request, reply.text, output);
    return second ?? first.value;
  };
}

function buildRequest({ spec, output }: PromptBodyOptions, named: ModelRef, prompt: string): ModelRequest {
  const { systemPrompt, maxTokens, temperature } = spec;
  const { schema } = output;
  const structured = typeof schema === 'object' && schema.type !== 'string' && Object.keys(schema).length > 0;
  return {
    backendId: named.id,
    model: named.model,
    ...(named.options !== undefined && { options: named.options }),
    promptLength: prompt.length + (systemPrompt?.length ?? 0),
    ...(systemPrompt !== undefined && { system: systemPrompt }),
    prompt,
    ...(maxTokens !== undefined && { maxTokens }),
    ...(temperature !== undefined && { temperature }),
    ...(structured && { schema }),
  };
}

/** The second and last answer, if it fits. Where even asking fails, the first answer is what counts. */
async function requestRepair(
  scope: Scope,
  effect: Effect,
  request: ModelRequest,
  answer: string,
  output: Validator,
): Promise<Json | undefined> {
  const value = parseReply(answer, output).value;
  const flaws = output.issues(value).map(({ path, message }) => `${path || '/'} ${message}`);
  const { prompt: asked = '' } = request;
  const prompt =
    `${asked}\n\nYour last answer was:\n${answer.slice(0, 4000)}\n\n` +
    `It does not fit: ${flaws.join('; ').slice(0, 2000)}. Answer again with a JSON value that fits the schema, and nothing else.`;
  const promptLength = request.promptLength + prompt.length - asked.length;
  try {
    const reply = (await scope.effect({ ...effect, input: { ...request, prompt, promptLength } })) as ModelReply;
    const second = parseReply(reply.text, output);
    return second.isValid ? second.value : undefined;
  } catch (thrown) {
    if (thrown instanceof LoopError && ['BACKEND_FAILED', 'TIMEOUT', 'CONTENT_REFUSED'].includes(thrown.code)) return;
    throw thrown;
  }
}

type SelectBackend = (input: Json, prompt: string) => BackendRef;

/** The first route whose conditions hold names the backend; else it is the loop's own. */
function compileRoutes({ id, backend = DEFAULT_BACKEND, policy }: PromptBodyOptions): SelectBackend {
  const routes = (policy?.routing ?? []).map((route) => ({
    holds: compileRouteCondition(route, id),
    backend: route.backend,
  }));
  return (input, prompt) => routes.find(({ holds }) => holds(input, prompt))?.backend ?? backend;
}

function compileRouteCondition({ when }: RouteSpec, id: string): (input: Json, prompt: string) => boolean {
  const paths = Object.entries(when.input ?? {}).map(([path, wanted]) => ({
    path: compileJsonPath(path, `${id}: policy.routing`),
    wanted: JSON.stringify(wanted),
  }));
  const over = when.promptLengthOver ?? -1;
  return (input, prompt) =>
    prompt.length > over && paths.every(({ path, wanted }) => JSON.stringify(path.findOne(input)) === wanted);
}
