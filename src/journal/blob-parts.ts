/**
 * Large values, as they are put aside. A long text inside one is stored apart and by its own digest, so that a reply of
 * a model and the answer that is made of it, a document and the message that quotes it, share it: it is stored once.
 */
import type { Json } from '../protocol/json.js';
import { digestOfText } from './record.js';

/** No JSON begins like this. */
const PARTS_PREFIX = 'parts:';
/** Shorter texts are not worth a place of their own. */
const MIN_BLOB_PART_CHARS = 4096;
const MAX_BLOB_PARTS = 100;

type ValuePath = readonly (string | number)[];
type PartReference = readonly [path: ValuePath, digest: string];

/** A value as texts to be stored: its own, and those of the long texts in it by their digests. */
export function splitIntoBlobs(value: Json | undefined): {
  readonly text: string;
  readonly parts: ReadonlyMap<string, string>;
} {
  const parts = new Map<string, string>();
  const places: PartReference[] = [];
  const bare = extractLongTexts(value as Json, [], (text, path) => {
    const own = JSON.stringify(text);
    const name = digestOfText(own);
    parts.set(name, own);
    places.push([path, name]);
    return places.length < MAX_BLOB_PARTS;
  });
  if (places.length === 0) return { text: JSON.stringify(value), parts };
  return { text: PARTS_PREFIX + JSON.stringify([bare, places]), parts };
}

/** The value that texts were made of; `part` gives the text of a digest, and checks it. */
export async function joinBlobParts(text: string, part: (digest: string) => Promise<string>): Promise<Json> {
  if (!text.startsWith(PARTS_PREFIX)) return JSON.parse(text) as Json;
  const [bare, places] = JSON.parse(text.slice(PARTS_PREFIX.length)) as [Json, readonly PartReference[]];
  for (const [path, name] of places) putAtPath(bare, path, JSON.parse(await part(name)) as Json);
  return bare;
}

/** The digests of the parts that a stored text names. */
export function partDigestsIn(text: string): readonly string[] {
  if (!text.startsWith(PARTS_PREFIX)) return [];
  const [, places] = JSON.parse(text.slice(PARTS_PREFIX.length)) as [Json, readonly PartReference[]];
  return places.map(([, name]) => name);
}

/** The value with its long texts taken out; what holds none is the same object. `take` says whether to go on taking. */
function extractLongTexts(value: Json, path: ValuePath, take: (text: string, path: ValuePath) => boolean): Json {
  let more = true;
  const walk = (at: Json, way: ValuePath): Json => {
    if (typeof at === 'string' && at.length >= MIN_BLOB_PART_CHARS && way.length > 0 && more) {
      more = take(at, way);
      return null;
    }
    if (typeof at !== 'object' || at === null) return at;
    let changed: Record<string, Json> | Json[] | undefined;
    for (const [key, member] of Object.entries(at)) {
      const left = walk(member as Json, [...way, Array.isArray(at) ? Number(key) : key]);
      if (left === member) continue;
      changed ??= Array.isArray(at) ? [...(at as readonly Json[])] : { ...(at as Record<string, Json>) };
      (changed as Record<string, Json>)[key] = left;
    }
    return changed ?? at;
  };
  return walk(value, path);
}

function putAtPath(value: Json, path: ValuePath, text: Json): void {
  let at = value as unknown as Record<string, Json>;
  for (const [index, key] of path.entries()) {
    if (typeof at !== 'object' || at === null || !Object.hasOwn(at, key)) return;
    if (index === path.length - 1) at[key] = text;
    else at = at[key] as unknown as Record<string, Json>;
  }
}
