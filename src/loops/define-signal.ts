/** `defineSignal`: a signal with a schema, from which the type of its payload is inferred. */
import { LoopError } from '../base/errors.js';
import type { SignalType } from '../protocol/body.js';
import type { Json } from '../protocol/json.js';
import { signalNameProblem } from './signal-name.js';
import { type AnySchema, compileIoSchema, type InputOf, type OutputOf } from './standard-schema.js';

/**
 * Defines a signal: a name and a schema for its payload, which is a Standard Schema (zod, valibot, arktype, …) or a
 * JSON Schema. A wait for it returns the parsed payload and discards payloads that do not fit. Throws
 * DEFINITION_INVALID if the name or the schema is invalid.
 *
 * @example
 * ```ts
 * const paid = defineSignal('paid', z.object({ amount: z.number() }));
 * const order = defineLoop({
 *   id: 'order',
 *   input: z.object({ id: z.string() }),
 *   output: z.object({ amount: z.number() }),
 *   run: async (_input, scope) => {
 *     const payment = await scope.race([(s) => s.wait(paid), (s) => s.sleep('3 days')]);
 *     return { amount: payment?.amount ?? 0 };
 *   },
 * });
 * ```
 */
export function defineSignal<const S extends AnySchema>(name: string, schema: S): SignalType<OutputOf<S>, InputOf<S>> {
  const problem = signalNameProblem(name);
  if (problem !== undefined)
    throw new LoopError('DEFINITION_INVALID', `defineSignal(${JSON.stringify(name)}): ${problem}.`, {
      reason: problem,
    });
  const { validator, check } = compileIoSchema(schema, 'INPUT_VALIDATION_FAILED', `signal ${name}`);
  const validate = (payload: unknown): OutputOf<S> => {
    try {
      return check(payload) as OutputOf<S>;
    } catch (thrown) {
      throw thrown instanceof LoopError && thrown.code === 'INPUT_VALIDATION_FAILED'
        ? payloadError(name, thrown)
        : thrown;
    }
  };
  return { name, schema: validator.schema, validate };
}

interface PayloadIssue {
  readonly path: string;
  readonly message: string;
}

function payloadError(name: string, { code, data }: LoopError): LoopError {
  const { errors } = (data ?? { errors: [] }) as unknown as { readonly errors: readonly PayloadIssue[] };
  const issues = errors.map(({ path, message }) => `${path || 'it'} ${message}`).join('; ');
  const message = `The payload of signal "${name}" does not fit its schema: ${issues}.`;
  return new LoopError(code, message, { errors: errors as unknown as Json });
}
