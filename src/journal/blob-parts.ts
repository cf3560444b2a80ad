/**
 * The stored form of large values. A long text inside a value is stored as a part of its own, under its own digest.
 * Values that contain the same text share the part: a model's reply and the message made from it store the text once.
 */
import type { Json } from '../protocol/json.js';
import { digestOfText } from './record.js';

/** Larger values are stored as blobs. */
export const MAX_INLINE_BYTES: number = 4096;
/** Marks a stored text with parts. No JSON text starts with it. */
const PARTS_PREFIX = 'parts:';
/** Shorter texts stay in the value: a part of their own would cost more than it saves. */
const MIN_BLOB_PART_CHARS = 4096;
/** The maximum number of parts of one value. Further long texts stay in the value. */
const MAX_BLOB_PARTS = 100;

type ValuePath = readonly (string | number)[];
type PartReference = readonly [path: ValuePath, digest: string];

/** A value as texts to store. */
interface BlobTexts {
  /** The value as JSON, or a prefix and JSON if the value has parts. */
  readonly text: string;
  /** The JSON text of each part, by digest. */
  readonly parts: ReadonlyMap<string, string>;
}

/** Splits a value into the texts that are stored for it. A value that is itself a text has no parts. */
export function splitIntoBlobs(value: Json | undefined): BlobTexts {
  const parts = new Map<string, string>();
  const references: PartReference[] = [];
  const remainder = extractLongTexts(value as Json, (text, path) => {
    const part = JSON.stringify(text);
    const digest = digestOfText(part);
    parts.set(digest, part);
    references.push([path, digest]);
    return references.length < MAX_BLOB_PARTS;
  });
  if (references.length === 0) return { text: JSON.stringify(value), parts };
  return { text: PARTS_PREFIX + JSON.stringify([remainder, references]), parts };
}

/** Restores a value from its stored text. `fetchPart` returns the verified text of a part, or throws. */
export async function joinBlobParts(text: string, fetchPart: (digest: string) => Promise<string>): Promise<Json> {
  if (!text.startsWith(PARTS_PREFIX)) return JSON.parse(text) as Json;
  const [value, references] = parseParts(text);
  for (const [path, digest] of references) putAtPath(value, path, JSON.parse(await fetchPart(digest)) as Json);
  return value;
}

/** Returns the digests of the parts that a stored text refers to; none for a value without parts. */
export function partDigestsIn(text: string): readonly string[] {
  if (!text.startsWith(PARTS_PREFIX)) return [];
  const [, references] = parseParts(text);
  return references.map(([, digest]) => digest);
}

function parseParts(text: string): [remainder: Json, references: readonly PartReference[]] {
  return JSON.parse(text.slice(PARTS_PREFIX.length));
}

/**
 * Returns the value with the long texts inside it replaced by null. Arrays and objects without such texts are not
 * copied. `extract` receives each text and returns false to stop the extraction.
 */
function extractLongTexts(root: Json, extract: (text: string, path: ValuePath) => boolean): Json {
  let canExtract = true;
  const walk = (value: Json, path: ValuePath): Json => {
    if (typeof value === 'string' && value.length >= MIN_BLOB_PART_CHARS && path.length > 0 && canExtract) {
      canExtract = extract(value, path);
      return null;
    }
    if (typeof value !== 'object' || value === null) return value;
    let changed: Record<string, Json> | Json[] | undefined;
    for (const [key, member] of Object.entries(value)) {
      const remainder = walk(member as Json, [...path, Array.isArray(value) ? Number(key) : key]);
      if (remainder === member) continue;
      changed ??= Array.isArray(value) ? [...(value as readonly Json[])] : { ...(value as Record<string, Json>) };
      (changed as Record<string, Json>)[key] = remainder;
    }
    return changed ?? value;
  };
  return walk(root, []);
}

/** Puts a text back at its path. Ignores a path that does not exist in the value: prototypes stay untouched. */
function putAtPath(root: Json, path: ValuePath, text: Json): void {
  let parent = root as unknown as Record<string, Json>;
  for (const [index, key] of path.entries()) {
    if (typeof parent !== 'object' || parent === null || !Object.hasOwn(parent, key)) return;
    if (index === path.length - 1) parent[key] = text;
    else parent = parent[key] as unknown as Record<string, Json>;
  }
}
