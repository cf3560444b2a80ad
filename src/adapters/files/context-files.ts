/**
 * Reads the files of `contextSkills`. A path is relative to the directory of its definition, or to the base directory for
 * a loop in code; `skill:NAME` is a file of the folder `skills` in the base directory. A definition that a journal
 * recorded may claim any directory, so only directories of loaded definitions, and those that are trusted, are read.
 */
import { join } from 'node:path';
import { contextError } from '../../base/context-error.js';
import { trustAdvice } from '../../base/permits.js';
import type { ContextFile, ContextFiles } from '../../loops/context/context-source.js';
import type { FileReference } from '../../loops/context/reference.js';
import type { DefinitionOrigin } from '../../loops/origin.js';
import { DocumentReadError } from './document-read-error.js';
import { readTextWithin } from './read-text.js';

/** The directories of context files. */
interface ContextFileOptions {
  /** The base directory: of `skill:NAME`, and of paths in loops in code. */
  readonly directory: string;
  /** Returns the directories of the definitions that were loaded from files. */
  readonly definitionDirectories: () => readonly (string | undefined)[];
}

/** Returns the port that reads context files from these directories. */
export function contextFilesIn(options: ContextFileOptions): ContextFiles {
  return {
    read: (reference, origin, maxBytes) =>
      reference.kind === 'skill'
        ? readSkill(reference.name, options.directory, maxBytes)
        : readPath(reference, directoryOf(reference.path, origin, options), maxBytes),
  };
}

function directoryOf(
  path: string,
  { directory, trusted }: DefinitionOrigin,
  { directory: base, definitionDirectories }: ContextFileOptions,
): string {
  if (directory === undefined) return base;
  // guard: context-directory-known
  if (directory !== base && !trusted && !definitionDirectories().includes(directory)) {
    const reason = `its definition claims the directory ${directory}, from which none is loaded and which is not trusted`;
    throw contextError(path, `${reason}. ${trustAdvice(directory)}`.replace(/\.$/, ''));
  }
  return directory;
}

async function readPath(
  { path }: Extract<FileReference, { kind: 'path' }>,
  directory: string,
  maxBytes: number,
): Promise<ContextFile> {
  return (await tryRead(path, directory, path, maxBytes)) ?? refuseMissing(path, directory);
}

/** Reads `skills/NAME.md` or `skills/NAME/SKILL.md`. Both together would be ambiguous. */
async function readSkill(name: string, directory: string, maxBytes: number): Promise<ContextFile> {
  const reference = `skill:${name}`;
  const paths = [join('skills', `${name}.md`), join('skills', name, 'SKILL.md')];
  const found: ContextFile[] = [];
  for (const path of paths) {
    const file = await tryRead(reference, directory, path, maxBytes);
    if (file !== undefined) found.push(file);
  }
  if (found.length > 1) throw contextError(reference, `there are ${paths.join(' and ')} in ${directory}; remove one`);
  return found[0] ?? refuseMissing(reference, directory, ` (${paths.join(' or ')})`);
}

/** Reads a file; returns undefined if it does not exist. */
async function tryRead(
  reference: string,
  directory: string,
  path: string,
  maxBytes: number,
): Promise<ContextFile | undefined> {
  try {
    return await readTextWithin(directory, path, maxBytes);
  } catch (thrown) {
    if (!(thrown instanceof DocumentReadError)) throw thrown;
    if (thrown.isMissing) return undefined;
    throw contextError(reference, thrown.message);
  }
}

function refuseMissing(reference: string, directory: string, candidates = ''): never {
  throw contextError(reference, `there is no such file${candidates} in ${directory}`);
}
