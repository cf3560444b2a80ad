// Compiles schemas, each once per process, because the suite opens many runtimes.

import type { ValidateFunction } from 'ajv';

export type Schema = object | boolean;

/** Returns the problem of a value; undefined if it is valid. */
export type Validator = (value: unknown) => string | undefined;

interface AjvCompiler {
  compile(schema: Schema): ValidateFunction;
  errorsText(errors: ValidateFunction['errors']): string;
}

/** Returns a compiler that caches its validators. */
export function compiler(ajv: AjvCompiler): (schema: Schema) => Validator {
  const cache = new Map<string, Validator>();
  return (schema) => {
    const key = JSON.stringify(schema);
    const validator = cache.get(key) ?? validatorOf(ajv, schema);
    cache.set(key, validator);
    return validator;
  };
}

function validatorOf(ajv: AjvCompiler, schema: Schema): Validator {
  const validate = ajv.compile(schema);
  return (value) => (validate(value) ? undefined : ajv.errorsText(validate.errors));
}
