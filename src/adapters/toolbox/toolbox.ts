/** The tools that a coding agent needs, over the directories that it is given. */
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

/** The tools by name. Those that do something have the policy `ask`; `withApproval` makes a copy with another. */
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

/** How each tool is made; the roots are only looked at by those that need them. */
export const toolFactories: ToolFactories = {
  list_files: (_options, roots) => listFilesTool(roots()),
  view_file: (_options, roots) => viewFileTool(roots()),
  search_files: (_options, roots) => searchFilesTool(roots()),
  write_file: (_options, roots) => writeFileTool(roots()),
  edit_file: (_options, roots) => editFileTool(roots()),
  run_command: ({ commands }, roots) => runCommandTool(roots(), commands),
  fetch_url: ({ fetch }) => fetchUrlTool(fetch),
};

/** Why there can be no toolbox here, whatever it is told. */
export function findPlatformProblem(platform: string = process.platform): string | undefined {
  if (platform === 'linux' || platform === 'darwin') return undefined;
  return `The toolbox needs Linux or macOS: on ${platform} there is no way to keep it inside its roots.`;
}

/** Makes the tools; a LoopError says what is wrong with the options. */
export function toolbox(options: ToolboxOptions): Toolbox {
  const missing = Object.hasOwn(options ?? {}, 'roots')
    ? undefined
    : 'toolbox needs options.roots, at least one directory.';
  const flaw = findPlatformProblem() ?? missing ?? findOptionsProblem(options, 'options');
  if (flaw !== undefined) throw new LoopError('CONFIG_INVALID', flaw);
  const roots = new Roots(options.roots);
  const made = Object.entries(toolFactories).map(([name, make]) => [name, make(options, () => roots)] as const);
  return Object.fromEntries(made) as unknown as Toolbox;
}
