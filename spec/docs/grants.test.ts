// The grant in the guide permits what the guide says.

import { readFileSync } from 'node:fs';
import { expect } from 'vitest';
import { parseGrant } from '../../src/policy/grant.js';
import { assertAdmitted } from '../../src/policy/grant-admission.js';
import { verifies } from '../verifies.js';

verifies('grant.document', 'the example of the guide is valid, and its arguments cannot be escaped', () => {
  const guide = readFileSync('docs/guides/grants.md', 'utf8');
  const [, example = ''] = /```json\n(.*?)```/s.exec(guide) ?? [];
  const grant = parseGrant(JSON.parse(example), { isOperators: true });
  const read = (input: unknown) =>
    assertAdmitted(grant, {
      ...{ kind: 'tool', name: 'files.read', input, safety: 'pure', boundary: 'toolbox' },
      perform: () => null,
    });
  read({ path: '/srv/reports/2030/march..md' });
  const escapes = ['/srv/reports/../../etc/passwd', '/srv/reports/..', '/etc/passwd', ['/etc/passwd'], undefined];
  for (const path of escapes) expect(() => read({ path }), String(path)).toThrow(/arguments/);
  expect(() => read(['/etc/passwd'])).toThrow(/arguments/);
});
