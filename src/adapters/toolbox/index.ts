/** Tools that a coding agent needs: files, commands and pages, confined to what they are given. */
export { type ToolboxToolsOptions, toolboxTools } from './implementation.js';
export type { CommandOptions, FetchOptions, ToolboxOptions } from './options.js';
export { type Toolbox, toolbox } from './toolbox.js';
