/** Opens the host of a verb on the store of the settings. Other processes may use the same store. */
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
  /** The loops that the host can run. */
  readonly definitions: Definitions;
  /** True if a missing store is created. */
  readonly createIfMissing: boolean;
}

/** A host, and the function that closes its store. If this process owned the store, another one takes over. */
type OpenHost = Pick<ComposedHost, 'host' | 'close'>;

/** Opens a host whose notices are printed to stderr. */
export function openHost(settings: ProjectSettings, options: OpenHostOptions, terminal: Terminal): Promise<OpenHost> {
  return composeHost(settings, { ...options, notify: (message) => terminal.printToStderr(message) });
}

/** Opens a host without loops, to read the journal. */
export async function openHostForReading(settings: ProjectSettings, terminal: Terminal): Promise<OpenHost> {
  return openHost(settings, { definitions: await emptyDefinitions(), createIfMissing: false }, terminal);
}

/** Opens a host with the loops of the project, to run recorded turns. */
export async function openHostForRunning(settings: ProjectSettings, terminal: Terminal): Promise<OpenHost> {
  return openHost(settings, { definitions: await loadLoops(settings), createIfMissing: false }, terminal);
}
