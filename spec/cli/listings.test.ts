// Listings in JSON.

import { expect } from 'vitest';
import { Project } from '../support/cli-project.js';
import { verifies } from '../verifies.js';

/** The listings, with the name of their list. */
const listings: readonly (readonly [name: string, ...args: string[]])[] = [
  ['loops', 'list'],
  ['runs', 'runs'],
  ['approvals', 'approvals'],
  ['receipts', 'receipts'],
  ['loops', 'host', 'status'],
  ['files', 'check'],
  ['ids', 'completion', 'ids', 'run'],
  ['keys', 'keys'],
];

verifies(
  'cli.contract',
  'each listing is an object with a named list, so that it can get further members',
  async () => {
    const project = new Project();
    await project.run(['run', 'echo', '--input', '{}']);
    for (const [name, ...args] of listings) {
      const document = await project.json<{ readonly [member: string]: unknown }>(args);
      expect(Array.isArray(document), args.join(' ')).toBe(false);
      expect(document[name], args.join(' ')).toBeInstanceOf(Array);
    }
  },
);
