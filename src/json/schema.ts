/**
 * JSON Schema, draft 2020-12: what goes into a loop and comes out of it. A schema is examined when it is registered, and
 * compiled into closures once for each distinct content. `format` and the `content…` keywords are annotations and assert
 * nothing, as the draft says by default. A check never changes the value and fills in no defaults.
 */
import { LoopError } from '../base/errors.js';
import { Recent } from '../base/recent.js';
import type { Json } from '../protocol/json.js';
import type { JsonSchema } from '../protocol/loop.js';
import { DIALECT, metaschemas } from './metaschema.js';
import { type Compilation, compile } from './schema/compile.js';
import { Exhausted, refuel } from './schema/fuel.js';
import { isSchemaFields, Library, Malformed, type SchemaFields } from './schema/library.js';
import { type Flaw, Report } from './schema/rule.js';
import { snapshot } from './value.js';

export type { Flaw } from './schema/rule.js';

/** A schema ready to check values. */
export interface Validator {
  readonly schema: JsonSchema;
  check(value: Json | undefined): boolean;
  /** Why the value does not fit: the first 20 reasons, none if it fits. */
  flaws(value: Json | undefined): readonly Flaw[];
}

export interface SchemaOptions {
  /** Documents that the schema may refer to, by address. */
  readonly known?: { readonly [uri: string]: JsonSchema };
}

const SIZE = 1024 * 1024;
const SCHEMA_DEPTH = 200;
const VALUE_DEPTH = 256;
const NAMED = 5;

const validators = new Recent<Validator>(16 * SIZE);

/** The validator of a schema that stands at `where`; DEFINITION_INVALID says what is wrong with it and where. */
export function compileSchema(schema: unknown, where: string, options: SchemaOptions = {}): Validator {
  try {
    const { known, ...unknown } = options;
    const [name] = Object.keys(unknown);
    if (name !== undefined) throw new Malformed('', `there is no option "${name}"`);
    const { document, text } = taken(schema, '');
    if (known !== undefined) return validator(document, known);
    return validators.of(text, () => validator(document, {}));
  } catch (error) {
    if (!(error instanceof Malformed)) throw error;
    throw refused(error, where);
  }
}

/** The place in another document is an address of its own. */
function refused({ pointer, message: reason }: Malformed, where: string): LoopError {
  const path = /^(?:\/|$)/.test(pointer) ? `${where}${pointer}` : pointer;
  const message = `The schema${path === '' ? '' : ` at ${path}`} cannot be used: ${reason}.`;
  return new LoopError('DEFINITION_INVALID', message, { path, reason });
}

/** A check for the kernel: the value itself, or the code with what does not fit. */
export function checked(
  validator: Validator,
  code: 'INPUT_VALIDATION_FAILED' | 'OUTPUT_VALIDATION_FAILED',
  loopId: string,
): (value: unknown) => unknown {
  const side = code === 'INPUT_VALIDATION_FAILED' ? 'input' : 'output';
  return (value) => {
    if (validator.check(value as Json)) return value;
    const flaws = validator.flaws(value as Json);
    const named = flaws.slice(0, NAMED).map(({ path, message }) => `${path === '' ? 'it' : path} ${message}`);
    const more = flaws.length > NAMED ? `; and ${flaws.length - NAMED} more` : '';
    const message = `The ${side} of "${loopId}" does not fit its schema: ${named.join('; ')}${more}.`;
    throw new LoopError(code, message, { errors: flaws.map((flaw) => ({ ...flaw })) });
  };
}

/** A private copy of a schema, if it is one of bounded size, and its text: nobody can change it afterwards. */
function taken(schema: unknown, pointer: string): { readonly document: JsonSchema; readonly text: string } {
  let document: Json | undefined;
  try {
    document = snapshot(schema, 'a schema');
  } catch (error) {
    if (!(error instanceof LoopError)) throw error;
    const { reason } = error.data as { readonly reason: string };
    throw new Malformed(pointer, reason);
  }
  if (typeof document !== 'boolean' && !isSchemaFields(document)) {
    throw new Malformed(pointer, 'a schema is an object or a boolean');
  }
  if (deeper(document, SCHEMA_DEPTH)) throw new Malformed(pointer, `it is nested deeper than ${SCHEMA_DEPTH}`);
  const text = JSON.stringify(document);
  if (text.length > SIZE) throw new Malformed(pointer, `it is larger than ${SIZE} characters`);
  return { document, text };
}

function deeper(value: unknown, levels: number): boolean {
  if (typeof value !== 'object' || value === null) return false;
  if (levels === 0) return true;
  if (Array.isArray(value)) {
    for (const item of value) if (deeper(item, levels - 1)) return true;
    return false;
  }
  for (const name in value) if (deeper((value as { [name: string]: unknown })[name], levels - 1)) return true;
  return false;
}

function validator(schema: JsonSchema, known: { readonly [uri: string]: JsonSchema }): Validator {
  const find = (uri: string) => (Object.hasOwn(known, uri) ? taken(known[uri], `${uri}#`).document : metaschemaAt(uri));
  const library = new Library(find, examine);
  if (isSchemaFields(schema)) library.add(schema);
  if (library.certain) return validatorOf(schema, () => compile(library, schema));
  const compiled = compile(library, schema);
  return validatorOf(schema, () => compiled);
}

function metaschemaAt(uri: string): JsonSchema | undefined {
  return snapshot(metaschemas.get(uri), 'a metaschema') as JsonSchema | undefined;
}

/** A validator that is made when it is first used; most definitions of a large set never are. */
function validatorOf(schema: JsonSchema, make: () => Compilation): Validator {
  let made: Compilation | (() => Compilation) = make;
  const ready = (): Compilation => {
    if (typeof made === 'function') made = made();
    return made;
  };
  let check = (value: unknown): boolean => {
    const { root, refers, recursive } = ready();
    check = refers || recursive ? (part) => obstacle(part, recursive, root.check) === undefined : root.check;
    return check(value);
  };
  return { schema, check: (value) => check(value), flaws: (value) => explained(value, ready()) };
}

function explained(value: unknown, { root, recursive }: Compilation): readonly Flaw[] {
  const reason = obstacle(value, recursive, root.check);
  if (reason === undefined) return [];
  const report = new Report();
  const explain = () => {
    root.explain(value, '', report);
    return false;
  };
  if (reason === UNFIT) obstacle(value, recursive, explain);
  if (report.flaws.length === 0) report.add('', reason);
  return report.flaws;
}

const UNFIT = 'does not fit';

/** Why a check does not end in yes, told in general; undefined if it does. What is too deep is not even tried. */
function obstacle(value: unknown, recursive: boolean, check: (value: unknown) => boolean): string | undefined {
  if (recursive && deeper(value, VALUE_DEPTH)) return `is nested deeper than ${VALUE_DEPTH}`;
  refuel();
  try {
    return check(value) ? undefined : UNFIT;
  } catch (error) {
    if (error instanceof Exhausted || error instanceof RangeError) return 'takes too long to check with this schema';
    throw error;
  }
}

let metaschema: Validator | undefined;

/** Throws the first thing in a schema that the metaschema does not allow. */
function examine(schema: SchemaFields, pointer: string): void {
  metaschema ??= metavalidator();
  if (metaschema.check(schema)) return;
  const [flaw] = metaschema.flaws(schema);
  throw new Malformed(`${pointer}${flaw?.path ?? ''}`, `it ${flaw?.message ?? 'does not fit the metaschema'}`);
}

function metavalidator(): Validator {
  const schema = metaschemaAt(DIALECT) as SchemaFields;
  const library = new Library(metaschemaAt, () => {});
  library.add(schema, DIALECT);
  return validatorOf(schema, () => compile(library, schema));
}
