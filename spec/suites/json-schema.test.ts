// The public test suite of JSON Schema, draft 2020-12, required and optional parts. The table lists the exceptions with
// their reasons. An exception that passes fails the test, and so does a failure that is not in the table.

import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { expect } from 'vitest';
import { compileSchema } from '../../src/json/schema.js';
import type { Json } from '../../src/protocol/json.js';
import type { JsonSchema } from '../../src/protocol/loop.js';
import { verifies } from '../verifies.js';

const data = new URL('../../../shared/data/jsonschema/', import.meta.url);
const hasSuite = existsSync(data);

const annotation = 'a format is an annotation, not an assertion, as is the default of the draft';
const dialect = 'a custom $schema is refused: vocabularies cannot be selected';

/** The number of tests of a file, or of a group in it, that fail on purpose, with the reason. */
const exceptions: { readonly [location: string]: readonly [tests: number, reason: string] } = {
  'vocabulary.json › schema that uses custom metaschema with with no validation vocabulary': [3, dialect],
  'vocabulary.json › ignore unrecognized optional vocabulary': [2, dialect],
  'properties.json › properties whose names are Javascript object property names': [
    7,
    'a key "__proto__" is refused everywhere',
  ],
  'optional/cross-draft.json › refs to historic drafts are processed as historic drafts': [
    1,
    'a schema of an older draft is refused if draft 2020-12 would interpret it differently',
  ],
  'optional/format-assertion.json › schema that uses custom metaschema with format-assertion: false': [2, dialect],
  'optional/format-assertion.json › schema that uses custom metaschema with format-assertion: true': [2, dialect],
  'optional/format/date-time.json': [19, annotation],
  'optional/format/date.json': [58, annotation],
  'optional/format/duration.json': [25, annotation],
  'optional/format/ecmascript-regex.json': [6, annotation],
  'optional/format/email.json': [11, annotation],
  'optional/format/hostname.json': [35, annotation],
  'optional/format/idn-email.json': [2, annotation],
  'optional/format/idn-hostname.json': [54, annotation],
  'optional/format/ipv4.json': [30, annotation],
  'optional/format/ipv6.json': [25, annotation],
  'optional/format/iri-reference.json': [2, annotation],
  'optional/format/iri.json': [6, annotation],
  'optional/format/json-pointer.json': [12, annotation],
  'optional/format/regex.json': [1, annotation],
  'optional/format/relative-json-pointer.json': [12, annotation],
  'optional/format/time.json': [28, annotation],
  'optional/format/uri-reference.json': [11, annotation],
  'optional/format/uri-template.json': [13, annotation],
  'optional/format/uri.json': [25, annotation],
  'optional/format/uuid.json': [13, annotation],
};

interface Group {
  readonly description: string;
  readonly schema: JsonSchema;
  readonly tests: readonly { readonly description: string; readonly data: Json; readonly valid: boolean }[];
}

function filesIn(folder: string, prefix = ''): string[] {
  return readdirSync(new URL(folder + prefix, data), { withFileTypes: true }).flatMap((entry) => {
    const path = `${prefix}${entry.name}`;
    return entry.isDirectory() ? filesIn(folder, `${path}/`) : path;
  });
}

function read<T>(path: string): T {
  return JSON.parse(readFileSync(new URL(path, data), 'utf8'));
}

/** Returns the tests of a group that fail. */
function failures(group: Group, documents: { readonly [uri: string]: JsonSchema }): string[] {
  try {
    const validator = compileSchema(group.schema, '', { documents });
    const failed = group.tests.filter(
      (test) =>
        validator.isValid(test.data) !== test.valid || (validator.issues(test.data).length === 0) !== test.valid,
    );
    return failed.map(({ description }) => description);
  } catch (error) {
    return group.tests.map(({ description }) => `${description} (${error})`);
  }
}

verifies('schema.suite', 'every test of the public suite passes, except for the listed ones', (context) => {
  context.skip(!hasSuite, 'needs ../shared/data');
  const remotes = filesIn('remotes/').map((file) => [
    `http://localhost:1234/${file}`,
    read<JsonSchema>(`remotes/${file}`),
  ]);
  const documents = Object.fromEntries(remotes) as { [uri: string]: JsonSchema };
  const counts: { [location: string]: number } = {};
  const unlisted: string[] = [];
  for (const file of filesIn('tests/draft2020-12/')) {
    for (const group of read<Group[]>(`tests/draft2020-12/${file}`)) {
      const name = `${file} › ${group.description}`;
      const location = Object.hasOwn(exceptions, file) ? file : name;
      const failed = failures(group, documents);
      if (!Object.hasOwn(exceptions, location)) unlisted.push(...failed.map((test) => `${name} › ${test}`));
      else counts[location] = (counts[location] ?? 0) + failed.length;
    }
  }
  expect(unlisted).toEqual([]);
  expect(counts).toEqual(
    Object.fromEntries(Object.entries(exceptions).map(([location, [tests]]) => [location, tests])),
  );
});

verifies('schema.suite', 'a failing test of the suite is detected', (context) => {
  context.skip(!hasSuite, 'needs ../shared/data');
  const [group] = read<Group[]>('tests/draft2020-12/minimum.json');
  const twin = { ...group, schema: { maximum: 1.1 } } as Group;
  expect(failures(twin, {}).length).toBeGreaterThan(0);
  expect(failures({ ...twin, schema: { minimum: 'low' } }, {})).toHaveLength(twin.tests.length);
});
