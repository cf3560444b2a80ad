/**
 * The drafts that `$schema` may name. All schemas are evaluated as draft 2020-12. An older draft is accepted only if
 * the schema uses no keyword whose meaning has changed, so no schema is silently misinterpreted.
 */
import { DRAFT_2020_12 } from '../metaschema.js';
import type { SchemaObject } from './documents.js';

/**
 * A draft, as a function that returns why a schema object of the draft cannot be evaluated as 2020-12, or undefined if
 * it can.
 */
export type Dialect = (schema: SchemaObject) => string | undefined;

const TUPLE_ITEMS_REASON = '"items" is a list; rename it to "prefixItems" and use draft 2020-12';

function newerKeywordReason(schema: SchemaObject, keywords: readonly string[], draft: string): string | undefined {
  const keyword = keywords.find((name) => Object.hasOwn(schema, name));
  return keyword === undefined ? undefined : `"${keyword}" has another meaning in ${draft}; use draft 2020-12`;
}

const draft2020: Dialect = (schema) => (Array.isArray(schema.items) ? TUPLE_ITEMS_REASON : undefined);

/** Keywords that draft 2019-09 and draft 7 do not have, or that draft 2020-12 no longer has. */
const KEYWORDS_SINCE_2020 = ['prefixItems', '$dynamicRef', '$dynamicAnchor', '$recursiveRef', '$recursiveAnchor'];
const KEYWORDS_SINCE_2019 =
  '$anchor $vocabulary minContains maxContains dependentRequired dependentSchemas unevaluatedItems unevaluatedProperties';

const draft2019: Dialect = (schema) =>
  draft2020(schema) ?? newerKeywordReason(schema, [...KEYWORDS_SINCE_2020, 'unevaluatedItems'], '2019-09');

/**
 * Keywords that may accompany `$ref` in draft 7, which ignores all siblings of `$ref`: these do not affect validation.
 */
const DRAFT_7_REF_SIBLINGS = new Set(
  '$ref $schema $comment title description default examples definitions $defs'.split(' '),
);

const draft7: Dialect = (schema) => {
  const ignored = Object.hasOwn(schema, '$ref')
    ? Object.keys(schema).find((name) => !DRAFT_7_REF_SIBLINGS.has(name))
    : undefined;
  if (ignored !== undefined) return `draft 7 ignores "${ignored}" beside "$ref"; put both into an "allOf"`;
  return (
    draft2020(schema) ??
    newerKeywordReason(schema, [...KEYWORDS_SINCE_2020, ...KEYWORDS_SINCE_2019.split(' ')], 'draft 7')
  );
};

const dialects: ReadonlyMap<string, Dialect> = new Map([
  [DRAFT_2020_12, draft2020],
  ['https://json-schema.org/draft/2019-09/schema', draft2019],
  ['http://json-schema.org/draft-07/schema', draft7],
]);

/** Returns the dialect with this URI, as in `$schema`; undefined if it is not supported. */
export function dialectOf(uri: string): Dialect | undefined {
  return dialects.get(uri.replace(/#$/, ''));
}

/** The dialect of a schema that names none. */
export const defaultDialect: Dialect = draft2020;
