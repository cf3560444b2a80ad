/** Asking a model as an effect: what is journaled is the request and the reply, whoever asks. */
import type { Effect, Scope } from '../../protocol/body.js';
import type { PolicySpec } from '../../protocol/loop.js';
import type { Model } from '../../protocol/model.js';
import { ask, type ModelDelta } from '../ask.js';
import { type Bench, turnOf } from '../bench.js';
import type { ConversationParts, ModelReply, ModelRequest } from '../model.js';
import type { Origin } from '../origin.js';
import { isThenable } from '../tool.js';
import { openFailureOf } from './failure.js';

export interface Questioning {
  readonly bench: Bench;
  readonly scope: Scope;
  readonly origin: Origin;
  readonly policy: PolicySpec | undefined;
  /** Tells this definition from others of its id. */
  readonly definition: string;
  /** Whose answers tell a script where it stands: the turn's, or the whole session's for one that goes on over turns. */
  readonly counts: 'turn' | 'session';
  /** Answers in place of the backend; a layer that names another backend asks that. */
  readonly model?: Model | undefined;
  readonly conversation?: ConversationParts;
  readonly onDelta?: ((delta: ModelDelta) => void) | undefined;
  /** Adds what is known of the tools that a reply calls. */
  readonly known?: (reply: ModelReply) => ModelReply;
}

/** Asks whatever backend the request names: a layer may have named another. */
export function modelEffect(request: ModelRequest, questioning: Questioning): Effect {
  const { policy, definition } = questioning;
  let attempts = 0;
  const perform: Effect['perform'] = (input, performance) => {
    const asked = input as unknown as ModelRequest;
    const { conversation, onDelta, bench, known } = questioning;
    attempts += 1;
    if (attempts > 1) onDelta?.({ kind: 'text', text: '', again: true });
    // To make a signal costs more than all else here. We leave nothing at the one that is used again; a model might.
    const signal = performance.sharedSignal ?? performance.signal;
    const handed = (): AbortSignal => performance.signal;
    const put = (model: Model): Promise<ModelReply> =>
      ask(model, asked, { signal, handed, conversation, onDelta, clock: bench.clock, known });
    // A backend that cannot be opened has failed like one that does not answer: another may do better.
    const fail = (thrown: unknown): never => {
      throw openFailureOf({ request: asked, conversation }, thrown);
    };
    let model: Model | PromiseLike<Model>;
    // guard: backend-open-error-caught
    try {
      model = modelOf(asked, request, questioning);
      if (isThenable(model))
        return Promise.resolve(model as PromiseLike<Model>).then(put, /* guard: backend-open-rejection-caught */ fail);
    } catch (thrown) {
      return fail(thrown);
    }
    return put(model);
  };
  // Without a policy no layer reads the definition.
  const rules = policy === undefined ? undefined : { policy, definition };
  return { kind: 'model', name: request.backendId, input: request, safety: 'idempotent', perform, ...rules };
}

function modelOf(asked: ModelRequest, request: ModelRequest, questioning: Questioning): Model | PromiseLike<Model> {
  const { bench, scope, origin, model: own, counts } = questioning;
  const { backendId: id, model, options } = asked;
  if (own !== undefined && id === request.backendId && model === request.model) return own;
  const ref = options === undefined ? { id, model } : { id, model, options };
  const turn = turnOf(scope);
  return bench.backend(id).open(ref, { origin, turn, answered: bench.occasion(turn).answered(ref, counts) });
}

/** The policy with every backend's model by name: a layer knows no backends. */
export function resolved(policy: PolicySpec | undefined, bench: Bench): PolicySpec | undefined {
  if (policy?.fallback === undefined) return policy;
  return { ...policy, fallback: policy.fallback.map((ref) => bench.named(ref)) };
}
