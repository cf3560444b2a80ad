/** The backends that come with Rondo. */
export { mockBackend } from './mock.js';
export { anthropicBackend, openaiBackend, openaiCompatibleBackend, type ProviderSettings } from './providers.js';
export { type ScriptedBackend, scriptedBackend, type UnfinishedScript } from './scripted.js';
