/** The effect that calls a model, for prompts and agents. The journal contains the request and the reply. */
import { runtimeEffect } from '../../journal/runtime-effects.js';
import type { Effect, OutputMeter, Scope } from '../../protocol/body.js';
import type { PolicySpec } from '../../protocol/loop.js';
import type { Model, ModelMessage } from '../../protocol/model.js';
import { isThenable } from '../../protocol/thenable.js';
import type { ModelConversation, ModelReply, ModelRequest } from '../model.js';
import { type CallModelOptions, callModel, type ModelDelta, modelTimeoutError } from '../model-call.js';
import { findModelObject, type ModelObject } from '../model-ref.js';
import type { DefinitionOrigin } from '../origin.js';
import { type LoopServices, turnIdOf } from '../services.js';
import { toOpenError } from './backend-error.js';
import { requestBound } from './request-bound.js';

/** The timeout of a model call whose policy has none. */
const DEFAULT_TIMEOUT_MS = 600_000;

interface ModelEffectOptions {
  readonly services: LoopServices;
  readonly scope: Scope;
  readonly origin: DefinitionOrigin;
  readonly policy: PolicySpec | undefined;
  /** Distinguishes definitions with the same id. */
  readonly definitionFingerprint: string;
  /**
   * Which recorded replies are counted for the provider: those of the turn, or of the whole session for a conversation.
   * A scripted model continues its script at this count.
   */
  readonly replyCountScope: 'turn' | 'session';
  /** The model objects of a loop in code. Other models are opened by their providers. */
  readonly modelObjects: readonly ModelObject[] | undefined;
  readonly conversation?: ModelConversation;
  /** The user message that is sent before the prompt of a request without a conversation. */
  readonly contextMessage?: ModelMessage | undefined;
  /**
   * True if a limit depends on the reported tokens, which some models report only in one of the two kinds of calls.
   * The reply is then streamed whether or not it is watched.
   * @default false
   */
  readonly hasTokenLimit?: boolean;
  readonly onDelta?: ((delta: ModelDelta) => void) | undefined;
  /** Adds information about the called tools to the reply. */
  readonly annotateReply?: (reply: ModelReply) => ModelReply;
}

/** Returns the effect of one model call. It calls the backend that its input names, which a layer may have changed. */
export function modelEffect(request: ModelRequest, options: ModelEffectOptions): Effect {
  const { policy, definitionFingerprint } = options;
  let attempts = 0;
  const perform: Effect['perform'] = (input, context) => {
    const { outputMeter } = context;
    const current = withOutputLimit(input as unknown as ModelRequest, outputMeter);
    const { conversation, contextMessage, services, annotateReply, onDelta } = options;
    attempts += 1;
    if (attempts > 1) onDelta?.({ kind: 'text', text: '', isRestart: true });
    // Creating a signal dominates the cost here. The shared one is safe, because callModel removes its listener.
    const signal = context.sharedSignal ?? context.signal;
    const timeout = defaultTimeout(options);
    const call = (model: Model): Promise<ModelReply> =>
      callModel(model, current, {
        signal,
        conversation,
        contextMessage,
        onDelta,
        outputMeter,
        timeout,
        alwaysStreams:
          options.hasTokenLimit === true || outputMeter !== undefined || !canSkipStreaming(current, options),
        clock: services.clock,
        annotateReply,
      });
    // A backend that cannot be opened counts as failed, so that a fallback can answer.
    const fail = (thrown: unknown): never => {
      throw toOpenError({ request: current, conversation, contextMessage }, thrown);
    };
    let model: Model | PromiseLike<Model>;
    // guard: backend-open-error-caught
    try {
      model = openModel(current, options);
      if (isThenable(model)) {
        const opening = Promise.resolve(model as PromiseLike<Model>);
        return withTimeout(opening, timeout, current).then(call, /* guard: backend-open-rejection-caught */ fail);
      }
    } catch (thrown) {
      return fail(thrown);
    }
    return call(model);
  };
  // Layers read the definition only if there is a policy.
  const rules = policy === undefined ? undefined : { policy, definition: definitionFingerprint };
  const tokenBound: Effect['tokenBound'] = (input) =>
    requestBound(input as unknown as ModelRequest, options.conversation, options.contextMessage);
  return runtimeEffect({
    kind: 'model',
    name: request.backendId,
    input: request,
    safety: 'idempotent',
    boundary: 'model',
    perform,
    tokenBound,
    ...rules,
  });
}

/** Returns the timeout of a model call without a policy that has one; undefined for a turn that the host does not run. */
function defaultTimeout({ policy, services, scope }: ModelEffectOptions): CallModelOptions['timeout'] {
  if (policy?.timeoutMs !== undefined) return undefined;
  const { watchdog } = services.turnContext(turnIdOf(scope));
  // guard: silent-model-times-out
  return watchdog && { ms: DEFAULT_TIMEOUT_MS, watchdog };
}

function withTimeout<T>(work: Promise<T>, timeout: CallModelOptions['timeout'], request: ModelRequest): Promise<T> {
  if (timeout === undefined) return work;
  return timeout.watchdog.withTimeout(timeout.ms, work, () => modelTimeoutError(request, timeout.ms));
}

function withOutputLimit(request: ModelRequest, meter: OutputMeter | undefined): ModelRequest {
  if (meter === undefined) return request;
  // guard: output-limited-to-reservation
  return { ...request, maxTokens: Math.min(meter.maxTokens, request.maxTokens ?? Number.POSITIVE_INFINITY) };
}

/** Returns true if a reply without a subscriber may be requested without streaming. */
function canSkipStreaming({ backendId, model }: ModelRequest, options: ModelEffectOptions): boolean {
  if (usedModelObject(options, backendId, model) !== undefined) return true;
  return options.services.provider(backendId).repliesLocally === true;
}

/** Returns the model object that answers a request; undefined if a provider opens its model. */
function usedModelObject(
  { modelObjects, services }: Pick<ModelEffectOptions, 'modelObjects' | 'services'>,
  id: string,
  model: string,
): Model | undefined {
  // guard: model-object-overridden
  if (services.overridesModels) return undefined;
  return findModelObject(modelObjects, id, model);
}

function openModel(
  current: ModelRequest,
  { services, scope, origin, modelObjects, replyCountScope }: ModelEffectOptions,
): Model | PromiseLike<Model> {
  const { backendId: id, model, options } = current;
  const object = usedModelObject({ modelObjects, services }, id, model);
  if (object !== undefined) return object;
  const ref = options === undefined ? { id, model } : { id, model, options };
  const turnId = turnIdOf(scope);
  return services.provider(id).open(ref, {
    origin,
    turnId,
    // Counted only for a provider that reads it.
    get replyCount() {
      return services.turnContext(turnId).replyCount(ref, replyCountScope);
    },
  });
}

/**
 * Returns the policy with an explicit model for every fallback. Layers have no access to providers and their defaults.
 */
export function withNamedFallbacks(policy: PolicySpec | undefined, services: LoopServices): PolicySpec | undefined {
  if (policy?.fallback === undefined) return policy;
  return { ...policy, fallback: policy.fallback.map((ref) => services.toModelRef(ref)) };
}
