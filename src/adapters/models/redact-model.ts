/**
 * A provider's model as we want it: neither its failures nor its answers tell its key (servers like to repeat what they
 * refuse), and an answer that was cut short is a failure.
 */
import { NO_REDACTION, type RedactingStream, type Redactor, redactorOf } from '../../base/redact.js';
import type { Model, ModelCallOptions, ModelStreamPart, ProviderOptions } from '../../protocol/model.js';

/** The model without the key in what it throws, answers and streams; its calls carry the options. */
export function redactModel(model: Model, key: string | undefined, providerOptions: ProviderOptions = {}): Model {
  const told = (call: ModelCallOptions): ModelCallOptions => ({
    ...call,
    providerOptions: { ...providerOptions, ...call.providerOptions },
  });
  const secrets = key === undefined ? NO_REDACTION : redactorOf([key]);
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
        return secrets.redactValue(await model.doGenerate(told(call)));
      } catch (thrown) {
        throw redactError(secrets, thrown);
      }
    },
    async doStream(call) {
      try {
        const { stream } = await model.doStream(told(call));
        return { stream: stream.pipeThrough(redactStream(secrets)) };
      } catch (thrown) {
        throw redactError(secrets, thrown);
      }
    },
  };
}

function redactStream(secrets: Redactor): TransformStream<ModelStreamPart, ModelStreamPart> {
  const texts = new Map<string, RedactingStream>();
  return new TransformStream({
    transform(part, controller) {
      if (part.type === 'error') controller.enqueue({ type: 'error', error: redactError(secrets, part.error) });
      else if (isTruncatedFinish(part))
        controller.enqueue({ type: 'error', error: { message: 'the stream ended too early' } });
      else for (const clean of redactStreamPart(part, secrets, texts)) controller.enqueue(clean);
    },
  });
}

/** A part without the key, which may begin in one part and end in the next. What is held back comes before the end of its text. */
function redactStreamPart(
  part: ModelStreamPart,
  secrets: Redactor,
  texts: Map<string, RedactingStream>,
): readonly ModelStreamPart[] {
  const kind = /^(text|reasoning|tool-input)-(delta|end)$/.exec(part.type);
  if (kind === null || !('id' in part)) return [secrets.redactValue(part)];
  const of = `${kind[1]} ${part.id}`;
  if ('delta' in part) {
    const text = texts.get(of) ?? secrets.openStream();
    texts.set(of, text);
    const delta = text.push(part.delta);
    return delta === '' && part.delta !== '' ? [] : [{ ...part, delta }];
  }
  const rest = texts.get(of)?.end() ?? '';
  texts.delete(of);
  const type = `${kind[1]}-delta` as 'text-delta';
  return rest === '' ? [part] : [{ type, id: part.id as string, delta: rest }, part];
}

/** The packages finish a stream that just stops, and have no reason to give then. */
function isTruncatedFinish(part: ModelStreamPart): boolean {
  return part.type === 'finish' && part.finishReason.unified === 'other' && part.finishReason.raw === undefined;
}

/** A failure with what a caller needs of it: its other members repeat the request and the answer, with the key in them. */
function redactError(secrets: Redactor, thrown: unknown): unknown {
  if (secrets === NO_REDACTION) return thrown;
  if (typeof thrown === 'string') return secrets.redactText(thrown);
  if (typeof thrown !== 'object' || thrown === null) return thrown;
  if (!(thrown instanceof Error)) return secrets.redactValue(thrown);
  if (!containsSecret(secrets, thrown)) return thrown;
  const { message, statusCode, isRetryable, responseHeaders, code } = thrown as Error & { [name: string]: unknown };
  const kept = { statusCode, isRetryable, responseHeaders: secrets.redactValue(responseHeaders), code };
  return Object.assign(new Error(secrets.redactText(message)), kept);
}

/** True if a failure, or what caused it, tells a secret anywhere. */
function containsSecret(secrets: Redactor, thrown: unknown, depth = 0): boolean {
  if (depth > 5) return true;
  if (thrown instanceof Error) {
    const members = Object.entries(thrown).filter(([name]) => name !== 'cause');
    const own = [thrown.message, thrown.stack ?? '', ...members.flat()];
    return (
      own.some((member) => containsSecret(secrets, member, depth + 1)) ||
      containsSecret(secrets, thrown.cause, depth + 1)
    );
  }
  return secrets.redactValue(thrown) !== thrown;
}
