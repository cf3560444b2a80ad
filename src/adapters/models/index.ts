/** The model providers that come with Rondo. */
export { mockProvider } from './mock.js';
export { anthropicProvider, openaiCompatibleProvider, openaiProvider, type ProviderSettings } from './providers.js';
export type { ScriptedReply } from './script.js';
export { type ScriptedProvider, scriptedProvider, type UnfinishedScript } from './scripted.js';
