/**
 * Which file a tool names, and whether it may run: only from a directory that the operator trusts, and only files
 * inside it, links followed. What can be told from the text is told when a definition is registered; the disk is
 * looked at when the tool is opened, and again when it is about to run.
 */
import { realpath, stat } from 'node:fs/promises';
import { isAbsolute, relative, resolve, sep } from 'node:path';
import { LoopError } from '../../base/errors.js';
import { trustAdvice } from '../../base/permits.js';
import type { DefinitionOrigin } from '../../loops/origin.js';

export interface ToolFile {
  /** The directory of the definition, links followed. */
  readonly directory: string;
  readonly file: string;
}

function isStrictlyInside(directory: string, file: string): boolean {
  const way = relative(directory, file);
  return way !== '' && way !== '..' && !way.startsWith(`..${sep}`) && !isAbsolute(way);
}

/** Why no file may be run from there under this path. */
export function findPathProblem(
  scheme: string,
  path: string,
  { directory, trusted }: DefinitionOrigin,
): string | undefined {
  if (directory === undefined) return `${scheme}: tools need a definition that comes from a file: paths start at it.`;
  if (!trusted) {
    return `${scheme}: tools run code, and ${directory} is not trusted. ${trustAdvice(directory)}`;
  }
  if (path === '' || path.includes('\0')) return `${scheme}: needs the path of a file, like ${scheme}:./tool.mjs.`;
  if (!isStrictlyInside(resolve(directory), resolve(directory, path))) {
    return `${scheme}:${path} leaves the directory of its definition (${directory}). Move the file into it.`;
  }
  return undefined;
}

/** The file behind the path as it is on the disk now. */
export async function locateToolFile(scheme: string, path: string, origin: DefinitionOrigin): Promise<ToolFile> {
  const named = `${scheme}:${path}`;
  const from = origin.directory ?? '';
  let place: ToolFile & { readonly isFile: boolean };
  try {
    const file = await realpath(resolve(from, path));
    place = { directory: await realpath(from), file, isFile: (await stat(file)).isFile() };
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    const what = code === 'ENOENT' || code === 'ENOTDIR' ? 'There is no such file' : `It cannot be reached (${code})`;
    throw new LoopError('TOOL_FAILED', `${named}: ${what}; the path starts at ${from}.`, { path }, error);
  }
  if (!isStrictlyInside(place.directory, place.file)) {
    const message = `${named} is a link that leaves the directory of its definition (${from}). Put the file itself there.`;
    throw new LoopError('TOOL_FAILED', message, { path });
  }
  if (!place.isFile) throw new LoopError('TOOL_FAILED', `${named} is not a file.`, { path });
  return place;
}
