// Schemas made into functions, each once in the life of the process: a suite opens many runtimes.

import type { ValidateFunction } from 'ajv';

export type Schema = object | boolean;

/** Says what does not fit, or undefined. */
export type Fault = (value: unknown) => string | undefined;

interface Ajvs {
  compile(schema: Schema): ValidateFunction;
  errorsText(errors: ValidateFunction['errors']): string;
}

export function compiler(ajv: Ajvs): (schema: Schema) => Fault {
  const known = new Map<string, Fault>();
  return (schema) => {
    const text = JSON.stringify(schema);
    const fits = known.get(text) ?? faultOf(ajv, schema);
    known.set(text, fits);
    return fits;
  };
}

function faultOf(ajv: Ajvs, schema: Schema): Fault {
  const fits = ajv.compile(schema);
  return (value) => (fits(value) ? undefined : ajv.errorsText(fits.errors));
}
