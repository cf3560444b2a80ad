/** Finds a started hosted loop by its id, or by the path of its file. */
import { existsSync } from 'node:fs';
import { resolve } from 'node:path';
import { LoopError } from '../../base/errors.js';
import { nearestWord } from '../../base/nearest-word.js';
import type { Host } from '../../host/host.js';
import { type ProjectSettings, readHostedLoopFile } from '../compose.js';

/**
 * Returns the id of a started hosted loop. The id of one takes precedence over a file of that name. Throws
 * HOSTED_LOOP_NOT_FOUND if it was not started, and DEFINITION_INVALID if its file is invalid.
 */
export async function startedLoopIdOf({ hosted }: Host, reference: string, settings: ProjectSettings): Promise<string> {
  if ((await hosted.definition(reference)) !== undefined) return reference;
  const path = resolve(settings.cwd, reference);
  const isFile = /\.(?:toml|json)$/.test(reference) && existsSync(path);
  const loop = isFile ? (await readHostedLoopFile(path)).document.id : reference;
  if (isFile && (await hosted.definition(loop)) !== undefined) return loop;
  const ids = (await hosted.list()).map((status) => status.loop);
  const nearest = nearestWord(loop, ids);
  const hint = nearest === undefined ? ' Start it: rondo host start FILE' : ` Did you mean "${nearest}"?`;
  throw new LoopError('HOSTED_LOOP_NOT_FOUND', `No hosted loop "${loop}" was started in this store.${hint}`, { loop });
}
