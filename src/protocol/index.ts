export type { Decision, Draft, Entry, ErrorRecord, KernelEntry, KernelFacts, KernelType, Safety } from './entry.js';
export type { Json } from './json.js';
