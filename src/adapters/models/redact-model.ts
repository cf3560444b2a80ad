/**
 * Wraps the model of a provider. Errors, replies and streams are redacted: servers often repeat the key of a request
 * that they reject.
 */
import { NO_REDACTION, type RedactingStream, type Redactor, redactorOf } from '../../base/redact.js';
import type { Model, ModelCallOptions, ModelStreamPart, ProviderOptions } from '../../protocol/model.js';

/**
 * Returns a model that redacts the key in errors, replies and streams, and adds `providerOptions` to every call.
 * Options of a call replace those for the same provider.
 */
export function redactModel(model: Model, key: string | undefined, providerOptions: ProviderOptions = {}): Model {
  const withOptions = (call: ModelCallOptions): ModelCallOptions => ({
    ...call,
    providerOptions: { ...providerOptions, ...call.providerOptions },
  });
  const redactor = key === undefined ? NO_REDACTION : redactorOf([key]);
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
        return redactor.redactValue(await model.doGenerate(withOptions(call)));
      } catch (thrown) {
        throw redactError(redactor, thrown);
      }
    },
    async doStream(call) {
      try {
        const { stream } = await model.doStream(withOptions(call));
        return { stream: stream.pipeThrough(redactStream(redactor)) };
      } catch (thrown) {
        throw redactError(redactor, thrown);
      }
    },
  };
}

function redactStream(redactor: Redactor): TransformStream<ModelStreamPart, ModelStreamPart> {
  const blocks = new Map<string, RedactingStream>();
  return new TransformStream({
    transform(part, controller) {
      if (part.type === 'error') controller.enqueue({ type: 'error', error: redactError(redactor, part.error) });
      else for (const redacted of redactStreamPart(part, redactor, blocks)) controller.enqueue(redacted);
    },
  });
}

/**
 * Redacts one part of a stream. A key may span several deltas, so the end of a delta may be withheld; withheld text is
 * emitted before the end of its block.
 */
function redactStreamPart(
  part: ModelStreamPart,
  redactor: Redactor,
  blocks: Map<string, RedactingStream>,
): readonly ModelStreamPart[] {
  const match = /^(text|reasoning|tool-input)-(delta|end)$/.exec(part.type);
  if (match === null || !('id' in part)) return [redactor.redactValue(part)];
  const key = `${match[1]} ${part.id}`;
  if ('delta' in part) {
    const block = blocks.get(key) ?? redactor.openStream();
    blocks.set(key, block);
    const delta = block.push(part.delta);
    return delta === '' && part.delta !== '' ? [] : [{ ...part, delta }];
  }
  const rest = blocks.get(key)?.end() ?? '';
  blocks.delete(key);
  const type = `${match[1]}-delta` as 'text-delta';
  return rest === '' ? [part] : [{ type, id: part.id as string, delta: rest }, part];
}

/**
 * Redacts a thrown value. An Error that contains a secret is replaced by a new one, which has only the members that
 * callers read, because the others repeat the request and the response. Any other Error is returned unchanged.
 */
function redactError(redactor: Redactor, thrown: unknown): unknown {
  if (redactor === NO_REDACTION) return thrown;
  if (typeof thrown === 'string') return redactor.redactText(thrown);
  if (typeof thrown !== 'object' || thrown === null) return thrown;
  if (!(thrown instanceof Error)) return redactor.redactValue(thrown);
  if (!containsSecret(redactor, thrown)) return thrown;
  const { message, statusCode, isRetryable, responseHeaders, code } = thrown as Error & { [name: string]: unknown };
  const members = { statusCode, isRetryable, responseHeaders: redactor.redactValue(responseHeaders), code };
  return Object.assign(new Error(redactor.redactText(message)), members);
}

/**
 * Returns true if the value or error, one of its members or one of its causes contains a secret, or if it is nested too
 * deeply to be searched.
 */
function containsSecret(redactor: Redactor, thrown: unknown, depth = 0): boolean {
  if (depth > 5) return true;
  if (thrown instanceof Error) {
    const members = Object.entries(thrown).filter(([name]) => name !== 'cause');
    const values = [thrown.message, thrown.stack ?? '', ...members.flat()];
    return (
      values.some((value) => containsSecret(redactor, value, depth + 1)) ||
      containsSecret(redactor, thrown.cause, depth + 1)
    );
  }
  return redactor.redactValue(thrown) !== thrown;
}
