/** Finds loops among the exports of a module. Importing a module runs its code, so callers check for trust first. */
import { DocumentReadError, describeError } from './document-read-error.js';
import { importModule } from './import-module.js';

/** An export that has the shape of a loop, and its name. The registry validates it. */
interface CodeExport {
  readonly name: string;
  readonly code: unknown;
}

type UnknownRecord = { readonly [name: string]: unknown };

function isDefinition(value: unknown): boolean {
  if (typeof value !== 'object' || value === null) return false;
  const { id, version, kind } = value as UnknownRecord;
  return typeof id === 'string' && typeof version === 'string' && typeof kind === 'string';
}

/**
 * Returns true for a definition, and for an object or a function whose member `definition` is one, as in the result of
 * `defineLoop`.
 */
function looksLikeLoop(value: unknown): boolean {
  const hasMembers = typeof value === 'function' || (typeof value === 'object' && value !== null);
  return isDefinition(value) || (hasMembers && isDefinition((value as unknown as UnknownRecord).definition));
}

/** Returns the exports of a module. Those of a compiled CommonJS module are members of its default export. */
function exportsOf(module: UnknownRecord): UnknownRecord {
  const compiled = module.default as UnknownRecord | null | undefined;
  return typeof compiled === 'object' && compiled !== null && compiled.__esModule === true ? compiled : module;
}

/**
 * Imports a module and returns the loops it exports, sorted by the names of the exports. An object that is exported
 * twice is returned once, under its first name. Throws DocumentReadError if the import fails.
 */
export async function importLoops(file: string): Promise<CodeExport[]> {
  try {
    const exported = exportsOf((await importModule(file)) as UnknownRecord);
    const loops = new Map<unknown, string>();
    for (const name of Object.keys(exported).sort()) {
      const code = exported[name];
      if (!loops.has(code) && looksLikeLoop(code)) loops.set(code, name);
    }
    return [...loops].map(([code, name]) => ({ name, code }));
  } catch (thrown) {
    if (thrown instanceof DocumentReadError) throw thrown;
    throw new DocumentReadError(`it could not be imported: ${describeError(thrown)}`);
  }
}
