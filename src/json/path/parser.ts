/** The parser of paths, loaded when the first path is more than names and indexes: it takes longer than all else here. */
import { createRequire } from 'node:module';

type Library = typeof import('json-p3');

const load = createRequire(import.meta.url);
let library: Library | undefined;

export function parser(): Library {
  library ??= load('json-p3') as Library;
  return library;
}
