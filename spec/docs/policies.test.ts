import { readFileSync } from 'node:fs';
import { expect } from 'vitest';
import { type LoopForm, loopFormNames, policyTable } from '../../src/loops/definition/policy-table.js';
import { verifies } from '../verifies.js';

const page = readFileSync(new URL('../../docs/guides/policy.md', import.meta.url), 'utf8');
const row = (cells: readonly string[]): string => `| ${cells.join(' | ')} |`;

verifies('policy.applies', 'the guide shows which key applies where, as the registration decides it', () => {
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
