/** Finds loops among the exports of a module. Importing a module runs its code, so callers check for trust first. */
import { pathToFileURL } from 'node:url';
import { DocumentReadError, describeError } from './document-read-error.js';

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
 * Returns true for a definition, and for an object whose member `definition` is one, as in the result of `defineLoop`.
 */
function looksLikeLoop(value: unknown): boolean {
  if (isDefinition(value)) return true;
  // The result of `defineLoop` can be called, so it is a function.
  const canHaveMembers = (typeof value === 'object' && value !== null) || typeof value === 'function';
  return canHaveMembers && isDefinition((value as UnknownRecord).definition);
}

function importFailureReason(file: string, thrown: unknown): string {
  const code = (thrown as { readonly code?: unknown } | null)?.code;
  if (code === 'ERR_UNKNOWN_FILE_EXTENSION' && file.endsWith('.ts')) {
    return `Node ${process.versions.node} cannot run TypeScript; use Node 22.18 or newer, or compile it to .mjs`;
  }
  return `it could not be imported: ${describeError(thrown)}`;
}

/**
 * Imports a module and returns the loops it exports, sorted by the names of the exports. An object that is exported
 * twice is returned once, under its first name. Throws DocumentReadError if the import fails.
 */
export async function importLoops(file: string): Promise<CodeExport[]> {
  try {
    const exported = (await import(pathToFileURL(file).href)) as UnknownRecord;
    const loops = new Map<unknown, string>();
    for (const name of Object.keys(exported).sort()) {
      const code = exported[name];
      if (!loops.has(code) && looksLikeLoop(code)) loops.set(code, name);
    }
    return [...loops].map(([code, name]) => ({ name, code }));
  } catch (thrown) {
    throw new DocumentReadError(importFailureReason(file, thrown));
  }
}
