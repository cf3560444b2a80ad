/**
 * Locates the files of tools. A tool may run only files inside the directory of its definition, after resolving links,
 * and only if the operator trusts that directory. Registration checks the trust and the path; the file system is
 * checked when the tool is opened and, for `exec:` tools, again immediately before the program runs.
 */
import { realpath, stat } from 'node:fs/promises';
import { isAbsolute, relative, resolve, sep } from 'node:path';
import { LoopError } from '../../base/errors.js';
import { trustAdvice } from '../../base/permits.js';
import type { DefinitionOrigin } from '../../loops/origin.js';

/** The file of a tool. */
export interface ToolFile {
  /** The real path of the directory of the definition. */
  readonly directory: string;
  /** The real path of the file. */
  readonly file: string;
}

function isStrictlyInside(directory: string, file: string): boolean {
  const relativePath = relative(directory, file);
  if (relativePath === '' || relativePath === '..') return false;
  return !relativePath.startsWith(`..${sep}`) && !isAbsolute(relativePath);
}

/**
 * Returns the reason why a tool cannot use this path: the definition has no directory, the directory is not trusted, or
 * the path is invalid or leaves the directory. Returns undefined if it can. Does not access the file system.
 */
export function findPathProblem(
  scheme: string,
  path: string,
  { directory, trusted }: DefinitionOrigin,
): string | undefined {
  if (directory === undefined)
    return `${scheme}: tools need a definition that comes from a file: their paths are relative to it.`;
  if (!trusted) {
    return `${scheme}: tools run code, and ${directory} is not trusted. ${trustAdvice(directory)}`;
  }
  if (path === '' || path.includes('\0')) return `${scheme}: needs the path of a file, such as ${scheme}:./tool.mjs.`;
  if (!isStrictlyInside(resolve(directory), resolve(directory, path))) {
    return `${scheme}:${path} leaves the directory of its definition (${directory}). Move the file into it.`;
  }
  return undefined;
}

/**
 * Resolves the path of a tool to its file. Throws TOOL_FAILED if it cannot be read, is outside of the directory of the
 * definition, or is not a regular file. Does not check the trust.
 */
export async function locateToolFile(scheme: string, path: string, origin: DefinitionOrigin): Promise<ToolFile> {
  const displayName = `${scheme}:${path}`;
  const base = origin.directory ?? '';
  let toolFile: ToolFile & { readonly isFile: boolean };
  try {
    const file = await realpath(resolve(base, path));
    toolFile = { directory: await realpath(base), file, isFile: (await stat(file)).isFile() };
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    const reason = code === 'ENOENT' || code === 'ENOTDIR' ? 'There is no such file' : `It cannot be read (${code})`;
    throw new LoopError('TOOL_FAILED', `${displayName}: ${reason}; the path is relative to ${base}.`, { path }, error);
  }
  if (!isStrictlyInside(toolFile.directory, toolFile.file)) {
    const message = `${displayName} is a link that leaves the directory of its definition (${base}). Put the file itself there.`;
    throw new LoopError('TOOL_FAILED', message, { path });
  }
  if (!toolFile.isFile) throw new LoopError('TOOL_FAILED', `${displayName} is not a file.`, { path });
  return toolFile;
}
