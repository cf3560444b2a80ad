/**
 * The drafts that a schema may name. Everything is read as 2020-12; an older draft is accepted as long as the schema uses
 * only what means the same in both, so that nothing is silently read in another way than it was written.
 */
import { DIALECT } from '../metaschema.js';
import type { SchemaFields } from './library.js';

/** A draft: what in a schema object would mean something else today, or undefined. */
export type Dialect = (schema: SchemaFields) => string | undefined;

const tupleItems = '"items" is a list; call it "prefixItems" and say 2020-12';

function newer(schema: SchemaFields, keywords: readonly string[], draft: string): string | undefined {
  const keyword = keywords.find((name) => Object.hasOwn(schema, name));
  return keyword === undefined ? undefined : `"${keyword}" means something else in ${draft}; say 2020-12`;
}

const today: Dialect = (schema) => (Array.isArray(schema.items) ? tupleItems : undefined);

const since2019 = ['prefixItems', '$dynamicRef', '$dynamicAnchor', '$recursiveRef', '$recursiveAnchor'];
const sinceDraft7 =
  '$anchor $vocabulary minContains maxContains dependentRequired dependentSchemas unevaluatedItems unevaluatedProperties';

const draft2019: Dialect = (schema) => today(schema) ?? newer(schema, [...since2019, 'unevaluatedItems'], '2019-09');

/** What may stand beside a `$ref` in draft 7, which reads nothing else there. */
const silent = new Set('$ref $schema $comment title description default examples definitions $defs'.split(' '));

const draft7: Dialect = (schema) => {
  const unread = Object.hasOwn(schema, '$ref') ? Object.keys(schema).find((name) => !silent.has(name)) : undefined;
  if (unread !== undefined) return `draft 7 does not read "${unread}" beside "$ref"; put both into an "allOf"`;
  return today(schema) ?? newer(schema, [...since2019, ...sinceDraft7.split(' ')], 'draft 7');
};

const dialects: ReadonlyMap<string, Dialect> = new Map([
  [DIALECT, today],
  ['https://json-schema.org/draft/2019-09/schema', draft2019],
  ['http://json-schema.org/draft-07/schema', draft7],
]);

/** The dialect of a `$schema`, if it is one that we read. */
export function dialectOf(uri: string): Dialect | undefined {
  return dialects.get(uri.replace(/#$/, ''));
}

/** The dialect of a schema that names none. */
export const defaultDialect: Dialect = today;
