/** Creates the tools of a coding agent for a set of root directories. */
import { LoopError } from '../../base/errors.js';
import { editFileTool } from './edit-file.js';
import { fetchUrlTool } from './fetch-url.js';
import { listFilesTool } from './list-files.js';
import { findOptionsProblem, type ToolboxOptions } from './options.js';
import { Roots } from './roots.js';
import { runCommandTool } from './run-command.js';
import { searchFilesTool } from './search-files.js';
import { viewFileTool } from './view-file.js';
import { writeFileTool } from './write-file.js';

/**
 * The tools by name. Those with side effects have the approval policy `ask`; `withApproval` creates a copy with
 * another.
 */
export type Toolbox = {
  readonly list_files: ReturnType<typeof listFilesTool>;
  readonly view_file: ReturnType<typeof viewFileTool>;
  readonly search_files: ReturnType<typeof searchFilesTool>;
  readonly write_file: ReturnType<typeof writeFileTool>;
  readonly edit_file: ReturnType<typeof editFileTool>;
  readonly run_command: ReturnType<typeof runCommandTool>;
  readonly fetch_url: ReturnType<typeof fetchUrlTool>;
};

type ToolFactories = { readonly [N in keyof Toolbox]: (options: ToolboxOptions, roots: () => Roots) => Toolbox[N] };

/** The functions that create the tools. Only those of tools that use the file system call `roots`. */
export const toolFactories: ToolFactories = {
  list_files: (_options, roots) => listFilesTool(roots()),
  view_file: (_options, roots) => viewFileTool(roots()),
  search_files: (_options, roots) => searchFilesTool(roots()),
  write_file: (_options, roots) => writeFileTool(roots()),
  edit_file: (_options, roots) => editFileTool(roots()),
  run_command: ({ commands }, roots) => runCommandTool(roots(), commands),
  fetch_url: ({ fetch }) => fetchUrlTool(fetch),
};

/** Returns the reason why the toolbox does not work on a platform; undefined if it does. */
export function findPlatformProblem(platform: string = process.platform): string | undefined {
  if (platform === 'linux' || platform === 'darwin') return undefined;
  return `The toolbox needs Linux or macOS: on ${platform}, it cannot be confined to its roots.`;
}

/**
 * Creates the tools. Throws CONFIG_INVALID if the options are invalid, a directory cannot be a root, or the platform is
 * not supported.
 *
 * @example
 * const tools = toolbox({ roots: ['.'] });
 * const agent = defineAgent({ id: 'coder', model, tools });
 */
export function toolbox(options: ToolboxOptions): Toolbox {
  const missingRoots = Object.hasOwn(options ?? {}, 'roots')
    ? undefined
    : 'toolbox needs options.roots, at least one directory.';
  const problem = findPlatformProblem() ?? missingRoots ?? findOptionsProblem(options, 'options');
  if (problem !== undefined) throw new LoopError('CONFIG_INVALID', problem);
  const roots = new Roots(options.roots);
  const tools = Object.entries(toolFactories).map(([name, create]) => [name, create(options, () => roots)] as const);
  return Object.fromEntries(tools) as unknown as Toolbox;
}
