/** Definitions that are code: what a module exports that looks like a loop. Importing runs it, so it must be trusted. */
import { pathToFileURL } from 'node:url';
import { DocumentReadError, describeError } from './document-read-error.js';

/** An export that calls itself a loop; whether it is one, the registry judges. */
export interface CodeExport {
  readonly name: string;
  readonly code: unknown;
}

type UnknownRecord = { readonly [name: string]: unknown };

function isDefinition(value: unknown): boolean {
  if (typeof value !== 'object' || value === null) return false;
  const { id, version, kind } = value as UnknownRecord;
  return typeof id === 'string' && typeof version === 'string' && typeof kind === 'string';
}

/** A definition, or something made in code that carries its own. */
function looksLikeLoop(value: unknown): boolean {
  return (
    isDefinition(value) ||
    (typeof value === 'object' && value !== null && isDefinition((value as UnknownRecord).definition))
  );
}

function importFailureReason(file: string, thrown: unknown): string {
  const code = (thrown as { readonly code?: unknown } | null)?.code;
  if (code === 'ERR_UNKNOWN_FILE_EXTENSION' && file.endsWith('.ts')) {
    return `Node ${process.versions.node} cannot run TypeScript; use Node 22.18 or newer, or compile it to .mjs`;
  }
  return `it could not be imported: ${describeError(thrown)}`;
}

/** The loops that a module exports, by name; an object that is exported twice counts once. */
export async function importLoops(file: string): Promise<CodeExport[]> {
  try {
    const exported = (await import(pathToFileURL(file).href)) as UnknownRecord;
    const found = new Map<unknown, string>();
    for (const name of Object.keys(exported).sort()) {
      const code = exported[name];
      if (!found.has(code) && looksLikeLoop(code)) found.set(code, name);
    }
    return [...found].map(([code, name]) => ({ name, code }));
  } catch (thrown) {
    throw new DocumentReadError(importFailureReason(file, thrown));
  }
}
