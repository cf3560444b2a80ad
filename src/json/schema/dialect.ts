/**
 * The drafts that a schema may name. Everything is read as 2020-12; an older draft is accepted as long as the schema uses
 * only what means the same in both, so that nothing is silently read in another way than it was written.
 */
import { DRAFT_2020_12 } from '../metaschema.js';
import type { SchemaObject } from './documents.js';

/** A draft: what in a schema object would mean something else today, or undefined. */
export type Dialect = (schema: SchemaObject) => string | undefined;

const TUPLE_ITEMS_REASON = '"items" is a list; call it "prefixItems" and say 2020-12';

function newerKeywordReason(schema: SchemaObject, keywords: readonly string[], draft: string): string | undefined {
  const keyword = keywords.find((name) => Object.hasOwn(schema, name));
  return keyword === undefined ? undefined : `"${keyword}" means something else in ${draft}; say 2020-12`;
}

const draft2020: Dialect = (schema) => (Array.isArray(schema.items) ? TUPLE_ITEMS_REASON : undefined);

const KEYWORDS_SINCE_2020 = ['prefixItems', '$dynamicRef', '$dynamicAnchor', '$recursiveRef', '$recursiveAnchor'];
const KEYWORDS_SINCE_2019 =
  '$anchor $vocabulary minContains maxContains dependentRequired dependentSchemas unevaluatedItems unevaluatedProperties';

const draft2019: Dialect = (schema) =>
  draft2020(schema) ?? newerKeywordReason(schema, [...KEYWORDS_SINCE_2020, 'unevaluatedItems'], '2019-09');

/** What may stand beside a `$ref` in draft 7, which reads nothing else there. */
const DRAFT_7_REF_SIBLINGS = new Set(
  '$ref $schema $comment title description default examples definitions $defs'.split(' '),
);

const draft7: Dialect = (schema) => {
  const unread = Object.hasOwn(schema, '$ref')
    ? Object.keys(schema).find((name) => !DRAFT_7_REF_SIBLINGS.has(name))
    : undefined;
  if (unread !== undefined) return `draft 7 does not read "${unread}" beside "$ref"; put both into an "allOf"`;
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

/** The dialect of a `$schema`, if it is one that we read. */
export function dialectOf(uri: string): Dialect | undefined {
  return dialects.get(uri.replace(/#$/, ''));
}

/** The dialect of a schema that names none. */
export const defaultDialect: Dialect = draft2020;
