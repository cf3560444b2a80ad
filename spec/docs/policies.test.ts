// The table of policy keys in the guide matches the registration.

import { readFileSync } from 'node:fs';
import { expect } from 'vitest';
import { type LoopForm, loopFormNames, policyTable } from '../../src/loops/definition/policy-table.js';
import { verifies } from '../verifies.js';

const page = readFileSync(new URL('../../docs/guides/policy.md', import.meta.url), 'utf8');
const row = (cells: readonly string[]): string => `| ${cells.join(' | ')} |`;

verifies('policy.applies', 'the guide lists where each policy key applies, as registration decides', () => {
  const forms = Object.keys(loopFormNames) as LoopForm[];
  const table = [
    row(['key', ...Object.values(loopFormNames)]),
    `|${'---|'.repeat(forms.length + 1)}`,
    ...Object.entries(policyTable).map(([key, { appliesTo }]) =>
      row([`\`${key}\``, ...forms.map((form) => appliesTo[form] ?? 'refused')]),
    ),
  ];
  expect(page).toContain(`\n\n${table.join('\n')}\n\n`);
});
