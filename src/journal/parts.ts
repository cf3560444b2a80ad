/**
 * Large values, as they are put aside. A long text inside one is stored apart and by its own digest, so that a reply of
 * a model and the answer that is made of it, a document and the message that quotes it, share it: it is stored once.
 */
import type { Json } from '../protocol/json.js';
import { digest } from './record.js';

/** No JSON begins like this. */
const MARK = 'parts:';
/** Shorter texts are not worth a place of their own. */
const LONG = 4096;
const MOST = 100;

type Path = readonly (string | number)[];
type Part = readonly [path: Path, digest: string];

/** A value as texts to be stored: its own, and those of the long texts in it by their digests. */
export function textsOf(value: Json | undefined): {
  readonly text: string;
  readonly parts: ReadonlyMap<string, string>;
} {
  const parts = new Map<string, string>();
  const places: Part[] = [];
  const bare = without(value as Json, [], (text, path) => {
    const own = JSON.stringify(text);
    const name = digest(own);
    parts.set(name, own);
    places.push([path, name]);
    return places.length < MOST;
  });
  if (places.length === 0) return { text: JSON.stringify(value), parts };
  return { text: MARK + JSON.stringify([bare, places]), parts };
}

/** The value that texts were made of; `part` gives the text of a digest, and checks it. */
export async function joined(text: string, part: (digest: string) => Promise<string>): Promise<Json> {
  if (!text.startsWith(MARK)) return JSON.parse(text) as Json;
  const [bare, places] = JSON.parse(text.slice(MARK.length)) as [Json, readonly Part[]];
  for (const [path, name] of places) put(bare, path, JSON.parse(await part(name)) as Json);
  return bare;
}

/** The digests of the parts that a stored text names. */
export function partsIn(text: string): readonly string[] {
  if (!text.startsWith(MARK)) return [];
  const [, places] = JSON.parse(text.slice(MARK.length)) as [Json, readonly Part[]];
  return places.map(([, name]) => name);
}

/** The value with its long texts taken out; what holds none is the same object. `take` says whether to go on taking. */
function without(value: Json, path: Path, take: (text: string, path: Path) => boolean): Json {
  let more = true;
  const walk = (at: Json, way: Path): Json => {
    if (typeof at === 'string' && at.length >= LONG && way.length > 0 && more) {
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

function put(value: Json, path: Path, text: Json): void {
  let at = value as unknown as Record<string, Json>;
  for (const [index, key] of path.entries()) {
    if (typeof at !== 'object' || at === null || !Object.hasOwn(at, key)) return;
    if (index === path.length - 1) at[key] = text;
    else at = at[key] as unknown as Record<string, Json>;
  }
}
