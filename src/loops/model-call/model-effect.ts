/** Asking a model as an effect: what is journaled is the request and the reply, whoever asks. */
import type { Effect, Scope } from '../../protocol/body.js';
import type { PolicySpec } from '../../protocol/loop.js';
import type { Model } from '../../protocol/model.js';
import type { ModelConversation, ModelReply, ModelRequest } from '../model.js';
import { callModel, type ModelDelta } from '../model-call.js';
import type { DefinitionOrigin } from '../origin.js';
import { type LoopServices, turnIdOf } from '../services.js';
import { isThenable } from '../tool.js';
import { toOpenError } from './backend-error.js';

interface ModelEffectOptions {
  readonly services: LoopServices;
  readonly scope: Scope;
  readonly origin: DefinitionOrigin;
  readonly policy: PolicySpec | undefined;
  /** Tells this definition from others of its id. */
  readonly definitionFingerprint: string;
  /** Whose answers tell a script where it stands: the turn's, or the whole session's for one that goes on over turns. */
  readonly replyCountScope: 'turn' | 'session';
  /** Answers in place of the backend; a layer that names another backend asks that. */
  readonly model?: Model | undefined;
  readonly conversation?: ModelConversation;
  readonly onDelta?: ((delta: ModelDelta) => void) | undefined;
  /** Adds what is known of the tools that a reply calls. */
  readonly annotateReply?: (reply: ModelReply) => ModelReply;
}

/** Asks whatever backend the request names: a layer may have named another. */
export function modelEffect(request: ModelRequest, questioning: ModelEffectOptions): Effect {
  const { policy, definitionFingerprint } = questioning;
  let attempts = 0;
  const perform: Effect['perform'] = (input, performance) => {
    const asked = input as unknown as ModelRequest;
    const { conversation, onDelta, services, annotateReply } = questioning;
    attempts += 1;
    if (attempts > 1) onDelta?.({ kind: 'text', text: '', isRestart: true });
    // To make a signal costs more than all else here. We leave nothing at the one that is used again; a model might.
    const signal = performance.sharedSignal ?? performance.signal;
    const handed = (): AbortSignal => performance.signal;
    const put = (model: Model): Promise<ModelReply> =>
      callModel(model, asked, {
        signal,
        signalForModel: handed,
        conversation,
        onDelta,
        clock: services.clock,
        annotateReply,
      });
    // A backend that cannot be opened has failed like one that does not answer: another may do better.
    const fail = (thrown: unknown): never => {
      throw toOpenError({ request: asked, conversation }, thrown);
    };
    let model: Model | PromiseLike<Model>;
    // guard: backend-open-error-caught
    try {
      model = openModel(asked, request, questioning);
      if (isThenable(model))
        return Promise.resolve(model as PromiseLike<Model>).then(put, /* guard: backend-open-rejection-caught */ fail);
    } catch (thrown) {
      return fail(thrown);
    }
    return put(model);
  };
  // Without a policy no layer reads the definition.
  const rules = policy === undefined ? undefined : { policy, definition: definitionFingerprint };
  return { kind: 'model', name: request.backendId, input: request, safety: 'idempotent', perform, ...rules };
}

function openModel(
  asked: ModelRequest,
  request: ModelRequest,
  questioning: ModelEffectOptions,
): Model | PromiseLike<Model> {
  const { services, scope, origin, model: own, replyCountScope } = questioning;
  const { backendId: id, model, options } = asked;
  if (own !== undefined && id === request.backendId && model === request.model) return own;
  const ref = options === undefined ? { id, model } : { id, model, options };
  const turn = turnIdOf(scope);
  return services
    .provider(id)
    .open(ref, { origin, turnId: turn, replyCount: services.turnContext(turn).replyCount(ref, replyCountScope) });
}

/** The policy with every backend's model by name: a layer knows no backends. */
export function withNamedFallbacks(policy: PolicySpec | undefined, bench: LoopServices): PolicySpec | undefined {
  if (policy?.fallback === undefined) return policy;
  return { ...policy, fallback: policy.fallback.map((ref) => bench.toModelRef(ref)) };
}
