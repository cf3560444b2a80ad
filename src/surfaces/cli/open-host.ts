/** Opens the host of a verb on the store of the settings. Other processes may use the same store. */
import { dirname } from 'node:path';
import { trustAdvice } from '../../base/permits.js';
import {
  type ComposedHost,
  composeHost,
  type Definitions,
  emptyDefinitions,
  loadLoops,
  type ProjectSettings,
} from '../compose.js';
import type { Terminal } from './terminal.js';
import { sanitizeText } from './terminal-text.js';

interface OpenHostOptions {
  /** The loops that the host can run. */
  readonly definitions: Definitions;
  /** True if a missing store is created. */
  readonly createIfMissing: boolean;
}

/** A host, its store, and the function that closes it. If this process owned the store, another one takes over. */
type OpenHost = Pick<ComposedHost, 'host' | 'store' | 'maintenance' | 'close'>;

/** Says that the keys of `.env` are not read, if there are any and its directory is not trusted. */
export function warnUntrustedEnvFile({ envFile }: ProjectSettings, terminal: Terminal): void {
  if (envFile === undefined || envFile.isTrusted || envFile.names.length === 0) return;
  const directory = sanitizeText(dirname(envFile.file));
  terminal.printToStderr(
    `The keys in .env are not used, because ${directory} is not trusted. ${trustAdvice(directory)}`,
  );
}

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
