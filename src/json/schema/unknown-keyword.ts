/** Finds keywords that no version of JSON Schema knows, for schemas in which a misspelt keyword would permit too much. */
import { isObject } from '../../base/own-property.js';
import type { Json } from '../../protocol/json.js';
import type { JsonSchema } from '../../protocol/loop.js';
import { keywordCompilers } from './compile.js';
import { subschemaKeywords } from './documents.js';

/** The keywords that identify, refer or annotate. */
const OTHER_KEYWORDS: ReadonlySet<string> = new Set(
  (
    '$schema $id id $ref $anchor $dynamicRef $dynamicAnchor $recursiveRef $recursiveAnchor $comment $vocabulary title description ' +
    'default examples deprecated readOnly writeOnly format contentEncoding contentMediaType'
  ).split(' '),
);

/** Returns the first unknown keyword of a schema that can be compiled, or of a schema in it; undefined if there is none. */
export function findUnknownKeyword(schema: JsonSchema): string | undefined {
  return unknownIn(schema as Json);
}

function unknownIn(schema: Json): string | undefined {
  if (!isObject(schema)) return undefined;
  for (const [keyword, value] of Object.entries(schema)) {
    const form = Object.hasOwn(subschemaKeywords, keyword) ? subschemaKeywords[keyword] : undefined;
    if (form === undefined && !Object.hasOwn(keywordCompilers, keyword) && !OTHER_KEYWORDS.has(keyword)) return keyword;
    // Older versions of JSON Schema have a list of schemas in `items`.
    const inner = form === undefined ? [] : form === 'map' && isObject(value) ? Object.values(value) : [value].flat();
    for (const subschema of inner as Json[]) {
      const unknown = unknownIn(subschema);
      if (unknown !== undefined) return unknown;
    }
  }
  return undefined;
}
