/** Reads definitions and the project configuration from files. */
export { type CustomBackend, loadConfig, type Price, type ProjectConfig } from './config.js';
export type { HostedFile, HostedLoopParser } from './hosted-files.js';
export {
  type FoundDefinition,
  type LoadedDefinitions,
  type LoadOptions,
  loadDefinitionFile,
  loadDefinitions,
} from './load.js';
export { type BadFile, type DefinitionResult, type DocumentParser, parseDefinitionText } from './parse-definition.js';
