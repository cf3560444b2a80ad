/** The tools of a coding agent: files, commands and web pages, confined to the configured directories and hosts. */
export { type ToolboxToolsOptions, toolboxTools } from './implementation.js';
export type { CommandOptions, FetchOptions, ToolboxOptions } from './options.js';
export { type Toolbox, toolbox } from './toolbox.js';
