/** The parser of paths, loaded when the first path is more than names and indexes: it takes longer than all else here. */
import { createRequire } from 'node:module';

type JsonP3 = typeof import('json-p3');

const requireModule = createRequire(import.meta.url);
let loadedJsonP3: JsonP3 | undefined;

export function jsonP3(): JsonP3 {
  loadedJsonP3 ??= requireModule('json-p3') as JsonP3;
  return loadedJsonP3;
}
