/**
 * Loads the JSONPath parser json-p3 with the first path that does not consist of simple names, indexes and wildcards,
 * because loading it takes long.
 */
import { createRequire } from 'node:module';

type JsonP3 = typeof import('json-p3');

const requireModule = createRequire(import.meta.url);
let loadedJsonP3: JsonP3 | undefined;

/** Returns the parser module. */
export function jsonP3(): JsonP3 {
  loadedJsonP3 ??= requireModule('json-p3') as JsonP3;
  return loadedJsonP3;
}
