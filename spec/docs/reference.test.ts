import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { expect } from 'vitest';
import { verifies } from '../verifies.js';

verifies('docs.reference', 'the pages of the API reference are those that the comments of the code produce', () => {
  const script = fileURLToPath(new URL('../../scripts/api-reference.mjs', import.meta.url));
  expect(() => execFileSync(process.execPath, [script, '--check'], { encoding: 'utf8' })).not.toThrow();
});

/** Returns the names of the members that the reference lists, by the name of the type. */
function membersByType(): ReadonlyMap<string, readonly string[]> {
  const page = readFileSync(new URL('../../docs/reference.md', import.meta.url), 'utf8');
  const sections = page.split(/^### /m).slice(1);
  return new Map(
    sections.map((section) => {
      const members = [...section.matchAll(/^\| `(\w+)/gm)].map(([, name = '']) => name);
      return [section.slice(0, section.indexOf('\n')), members];
    }),
  );
}

verifies('docs.reference', 'a type that an exported signature refers to has a section', () => {
  const members = membersByType();
  expect(members.get('LoopsToolDefinition')).toEqual(expect.arrayContaining(['name', 'inputSchema', 'execute']));
  expect(members.get('LoopsToolOptions')).toEqual(expect.arrayContaining(['approvedTarget', 'onToolOutputDelta']));
  expect([...members.keys()]).toEqual(expect.arrayContaining(['ApprovalPolicy', 'RetrySpec', 'Safety']));
  expect([...members.keys()].filter((name) => ['Host', 'Store'].includes(name))).toEqual([]);
});

verifies('docs.reference', 'an interface has its inherited members, with or without a comment', () => {
  const members = membersByType();
  const inherited = ['approval', 'cache', 'filters', 'rateLimit', 'retry', 'timeoutMs'];
  expect([...(members.get('PolicyOption') ?? [])].sort()).toEqual([...inherited, 'fallback', 'routing'].sort());
  expect(members.get('LoopsToolOptions')).toEqual(expect.arrayContaining(['toolCallId', 'messages', 'abortSignal']));
});
