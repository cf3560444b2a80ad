/**
 * Opens the host of a case: on a store of its own, in a new directory, with scripted models. Nothing of the project is
 * written. The signer of the environment signs, or else a key of the case: never one of the project.
 */
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Host } from '../../host/host.js';
import { type CaseModels, createCaseModels } from '../compose/harness-models.js';
import {
  type CaseClock,
  composeHost,
  createCaseClock,
  type Definitions,
  openReceiptKeys,
  type ProjectSettings,
} from '../compose.js';
import type { HarnessCase } from './harness-case.js';

/** What all cases of a harness share. */
export interface HarnessContext {
  readonly settings: ProjectSettings;
  readonly definitions: Definitions;
  /** Receives the directory of each case, and undefined when it has been removed. */
  readonly onDirectory?: (directory: string | undefined) => void;
}

/** The host of a case. */
export interface ScratchHost {
  readonly host: Host;
  readonly models: CaseModels;
  /** The hosted loops among the definitions. */
  readonly hostedFiles: Definitions['hosted'];
  readonly clock: CaseClock;
  /** Returns the earliest due time of the store that is later than a time; undefined if there is none. */
  nextDueAt(after: number): Promise<number | undefined>;
  /** The public keys of its receipts. */
  readonly keys: () => Promise<readonly { readonly kid: string; readonly publicKey: string }[]>;
}

/** Calls `use` with the host of a case, and removes its directory afterwards. */
export async function withScratchHost<T>(
  item: HarnessCase,
  { settings, definitions, onDirectory }: HarnessContext,
  use: (scratch: ScratchHost) => Promise<T>,
): Promise<T> {
  const directory = await mkdtemp(join(tmpdir(), 'rondo-harness-'));
  onDirectory?.(directory);
  try {
    const own = settingsOfCase(item, settings, directory);
    const models = createCaseModels(item.script);
    const clock = await createCaseClock(own);
    const composed = await composeHost(own, { definitions, clock, modelOverride: models.provider });
    try {
      const keys = async () => (await (await openReceiptKeys(own)).list()).keys;
      const nextDueAt = (after: number) => composed.store.dueTurns.nextDueAt(after);
      return await use({ host: composed.host, models, hostedFiles: definitions.hosted, clock, nextDueAt, keys });
    } finally {
      await composed.close();
    }
  } finally {
    await rm(directory, { recursive: true, force: true, maxRetries: 3 });
    onDirectory?.(undefined);
  }
}

function settingsOfCase({ startsAt }: HarnessCase, settings: ProjectSettings, directory: string): ProjectSettings {
  const { authority, clockStartAt } = settings;
  return {
    ...settings,
    dataDirectory: directory,
    // guard: case-has-its-own-store
    store: { kind: 'sqlite', path: join(directory, 'journal.db') },
    clockStartAt: startsAt ?? clockStartAt,
    // The journal is new, so the definitions in it are those that this process recorded.
    authority: { ...authority, directories: [...authority.directories, { directory, source: '--trust' }] },
  };
}
