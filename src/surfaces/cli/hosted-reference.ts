/** Finds a started hosted loop by its id, or by the path of its file, and says where one is that was not found. */
import { existsSync } from 'node:fs';
import { resolve } from 'node:path';
import { LoopError } from '../../base/errors.js';
import { nearestWord } from '../../base/nearest-word.js';
import type { Host } from '../../host/host.js';
import { listHostedLoopFiles, type ProjectSettings, readHostedLoopFile } from '../compose.js';

/**
 * Returns the id of a started hosted loop. The id of one takes precedence over a file of that name. Throws
 * HOSTED_LOOP_NOT_FOUND if it was not started, and DEFINITION_INVALID if its file is invalid.
 */
export async function startedLoopIdOf({ hosted }: Host, reference: string, settings: ProjectSettings): Promise<string> {
  if ((await hosted.definition(reference)) !== undefined) return reference;
  const path = resolve(settings.cwd, reference);
  const isFile = /\.(?:toml|json)$/.test(reference) && existsSync(path);
  const loop = isFile ? (await readHostedLoopFile(path)).document.id : reference;
  try {
    await hosted.status(loop);
    return loop;
  } catch (thrown) {
    if (!(thrown instanceof LoopError) || thrown.code !== 'HOSTED_LOOP_NOT_FOUND') throw thrown;
    const isKnown = isFile || (await hasFile(settings, loop));
    const start = isKnown ? `Start it: rondo host start ${reference}` : 'Start one: rondo host start FILE';
    throw new LoopError(thrown.code, `${thrown.message} ${start}`, thrown.data);
  }
}

/**
 * Returns the sentence about hosted loops that follows one about a turn that was not found: the loop has only a file, or
 * another loop has a similar id. Empty if there is nothing to say.
 */
export async function hostedLoopHint({ hosted }: Host, reference: string, settings: ProjectSettings): Promise<string> {
  if (await hasFile(settings, reference)) return ` Start it: rondo host start ${reference}`;
  const nearest = nearestWord(
    reference,
    (await hosted.list()).map(({ loop }) => loop),
  );
  return nearest === undefined ? '' : ` Did you mean the hosted loop "${nearest}"?`;
}

/** True if a file among the definitions describes this hosted loop. */
async function hasFile(settings: ProjectSettings, loop: string): Promise<boolean> {
  return (await listHostedLoopFiles(settings)).some(({ document }) => document?.id === loop);
}
