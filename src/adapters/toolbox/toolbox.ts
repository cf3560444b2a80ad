/** The tools that a coding agent needs, over the directories that it is given. */
import { LoopError } from '../../base/errors.js';
import { runCommand } from './command.js';
import { editFile } from './edit.js';
import { fetchUrl } from './fetch.js';
import { listFiles } from './list.js';
import { optionsFlaw, type ToolboxOptions } from './options.js';
import { Roots } from './roots.js';
import { searchFiles } from './search.js';
import { viewFile } from './view.js';
import { writeFile } from './write.js';

/** The tools by name. Those that do something have the policy `ask`; `withApproval` makes a copy with another. */
export type Toolbox = {
  readonly list_files: ReturnType<typeof listFiles>;
  readonly view_file: ReturnType<typeof viewFile>;
  readonly search_files: ReturnType<typeof searchFiles>;
  readonly write_file: ReturnType<typeof writeFile>;
  readonly edit_file: ReturnType<typeof editFile>;
  readonly run_command: ReturnType<typeof runCommand>;
  readonly fetch_url: ReturnType<typeof fetchUrl>;
};

type Makers = { readonly [N in keyof Toolbox]: (options: ToolboxOptions, roots: () => Roots) => Toolbox[N] };

/** How each tool is made; the roots are only looked at by those that need them. */
export const makers: Makers = {
  list_files: (_options, roots) => listFiles(roots()),
  view_file: (_options, roots) => viewFile(roots()),
  search_files: (_options, roots) => searchFiles(roots()),
  write_file: (_options, roots) => writeFile(roots()),
  edit_file: (_options, roots) => editFile(roots()),
  run_command: ({ commands }, roots) => runCommand(roots(), commands),
  fetch_url: ({ fetch }) => fetchUrl(fetch),
};

/** Why there can be no toolbox here, whatever it is told. */
export function platformFlaw(platform: string = process.platform): string | undefined {
  if (platform === 'linux' || platform === 'darwin') return undefined;
  return `The toolbox needs Linux or macOS: on ${platform} there is no way to keep it inside its roots.`;
}

/** Makes the tools; a LoopError says what is wrong with the options. */
export function toolbox(options: ToolboxOptions): Toolbox {
  const missing = Object.hasOwn(options ?? {}, 'roots')
    ? undefined
    : 'toolbox needs options.roots, at least one directory.';
  const flaw = platformFlaw() ?? missing ?? optionsFlaw(options, 'options');
  if (flaw !== undefined) throw new LoopError('CONFIG_INVALID', flaw);
  const roots = new Roots(options.roots);
  const made = Object.entries(makers).map(([name, make]) => [name, make(options, () => roots)] as const);
  return Object.fromEntries(made) as unknown as Toolbox;
}
