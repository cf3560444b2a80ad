/** Definitions and settings from files. */
export { type Config, type CustomBackend, loadConfig, type Price } from './config.js';
export { type BadFile, type Judged, judgeText, type ParseDefinition } from './document.js';
export { type Found, type Loaded, type LoadOptions, loadDefinitionFile, loadDefinitions } from './load.js';
