/** Reads the grant file of the operator. Relative roots in it start at the directory of the file. */
import { readFile, stat } from 'node:fs/promises';
import { dirname, resolve } from 'node:path';
import { isObject } from '../../base/own-property.js';
import { parseStrictJson } from '../../json/strict-json.js';
import type { Grant } from '../../protocol/grant.js';
import type { JsonObject } from '../../protocol/json.js';
import { withAbsoluteRoots } from '../grant-roots.js';
import { type SettingsInput, UsageError } from '../settings.js';
import type { VerbOptions } from './verb.js';

const MAX_GRANT_BYTES = 1024 * 1024;

/**
 * Returns an object with the grant of the file in `--grant`; an empty one without it. Throws a UsageError if the file is
 * not strict JSON with an object, or if there are two files.
 */
export async function readGrant(
  { grant: files }: VerbOptions,
  { cwd }: SettingsInput,
): Promise<{ readonly grant?: Grant }> {
  if (!Array.isArray(files)) return {};
  const [file, ...others] = files.map(String);
  if (file === undefined) return {};
  if (others.length > 0) throw new UsageError('--grant can be given once: a turn has one grant.');
  const path = resolve(cwd, file);
  return { grant: await withAbsoluteRoots(await parseFile(file, path), dirname(path)) };
}

async function parseFile(file: string, path: string): Promise<JsonObject> {
  try {
    const { size } = await stat(path);
    if (size > MAX_GRANT_BYTES) throw new Error(`it has more than ${MAX_GRANT_BYTES} bytes`);
    const document = parseStrictJson(await readFile(path), { maxBytes: MAX_GRANT_BYTES });
    if (!isObject(document)) throw new Error('it does not contain an object');
    return document;
  } catch (thrown) {
    const reason = thrown instanceof Error ? thrown.message : String(thrown);
    throw new UsageError(`--grant ${file} cannot be used: ${reason.replace(/\.$/, '')}.`);
  }
}
