/**
 * A provider's model as we want it: its failures do not tell its key (servers like to repeat what they refuse), and
 * an answer that was cut short is a failure.
 */
import type { Model, ModelCallOptions, ModelStreamPart, ProviderOptions } from '../../protocol/model.js';

/** The model without the key in what it throws and streams as errors; its calls carry the options. */
export function sealed(model: Model, key: string | undefined, providerOptions: ProviderOptions = {}): Model {
  const told = (call: ModelCallOptions): ModelCallOptions => ({
    ...call,
    providerOptions: { ...providerOptions, ...call.providerOptions },
  });
  const { specificationVersion, provider, modelId } = model;
  return {
    specificationVersion,
    provider,
    modelId,
    get supportedUrls() {
      return model.supportedUrls;
    },
    async doGenerate(call) {
      try {
        return await model.doGenerate(told(call));
      } catch (thrown) {
        throw without(key, thrown);
      }
    },
    async doStream(call) {
      try {
        const { stream } = await model.doStream(told(call));
        return { stream: stream.pipeThrough(checking(key)) };
      } catch (thrown) {
        throw without(key, thrown);
      }
    },
  };
}

function checking(key: string | undefined): TransformStream<ModelStreamPart, ModelStreamPart> {
  return new TransformStream({
    transform(part, controller) {
      if (part.type === 'error') controller.enqueue({ type: 'error', error: without(key, part.error) });
      else if (isCut(part)) controller.enqueue({ type: 'error', error: { message: 'the stream ended too early' } });
      else controller.enqueue(part);
    },
  });
}

/** The packages finish a stream that just stops, and have no reason to give then. */
function isCut(part: ModelStreamPart): boolean {
  return part.type === 'finish' && part.finishReason.unified === 'other' && part.finishReason.raw === undefined;
}

/** The same failure when it does not tell the key, else one with what a caller needs of it. */
function without(key: string | undefined, thrown: unknown): unknown {
  if (key === undefined || typeof thrown !== 'object' || thrown === null) return thrown;
  const { message, statusCode, isRetryable, responseHeaders } = thrown as { [name: string]: unknown };
  if (typeof message !== 'string' || !message.includes(key)) return thrown;
  return Object.assign(new Error(message.replaceAll(key, '[secret]')), { statusCode, isRetryable, responseHeaders });
}
