/** The host of one verb, on the store of the settings, which other processes may be using too. */
import {
  type ComposedHost,
  composeHost,
  type Definitions,
  emptyDefinitions,
  loadLoops,
  type ProjectSettings,
} from '../compose.js';
import type { Terminal } from './terminal.js';

interface OpenHostOptions {
  /** The loops that it can run. */
  readonly definitions: Definitions;
  /** True if a store that is absent is made. */
  readonly createIfMissing: boolean;
}

/** A host, and how to leave its store: another process then takes over what is left to own. */
export type OpenHost = Pick<ComposedHost, 'host' | 'close'>;

export function openHost(settings: ProjectSettings, purpose: OpenHostOptions, terminal: Terminal): Promise<OpenHost> {
  return composeHost(settings, { ...purpose, notify: (message) => terminal.printToStderr(message) });
}

/** A host that only looks at what was recorded. */
export async function openHostForReading(settings: ProjectSettings, terminal: Terminal): Promise<OpenHost> {
  return openHost(settings, { definitions: await emptyDefinitions(), createIfMissing: false }, terminal);
}

/** A host that goes on with what was recorded, with the loops of the project. */
export async function openHostForRunning(settings: ProjectSettings, terminal: Terminal): Promise<OpenHost> {
  return openHost(settings, { definitions: await loadLoops(settings), createIfMissing: false }, terminal);
}
