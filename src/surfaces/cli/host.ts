/** The host of one verb, on the store of the settings, which other processes may be using too. */
import {
  type Composed,
  compose,
  type Definitions,
  loadLoops,
  noDefinitions,
  type ProjectSettings,
} from '../compose.js';
import type { Terminal } from './terminal.js';

interface Purpose {
  /** The loops that it can run. */
  readonly definitions: Definitions;
  /** True if a store that is absent is made. */
  readonly make: boolean;
}

/** A host, and how to leave its store: another process then takes over what is left to own. */
export type OpenHost = Pick<Composed, 'host' | 'close'>;

export function openHost(settings: ProjectSettings, purpose: Purpose, terminal: Terminal): Promise<OpenHost> {
  return compose(settings, { ...purpose, notify: (message) => terminal.say(message) });
}

/** A host that only looks at what was recorded. */
export async function hostToLook(settings: ProjectSettings, terminal: Terminal): Promise<OpenHost> {
  return openHost(settings, { definitions: await noDefinitions(), make: false }, terminal);
}

/** A host that goes on with what was recorded, with the loops of the project. */
export async function hostToContinue(settings: ProjectSettings, terminal: Terminal): Promise<OpenHost> {
  return openHost(settings, { definitions: await loadLoops(settings), make: false }, terminal);
}
