import { isAbsolute, join, relative, resolve } from 'node:path';
import fc from 'fast-check';
import { expect } from 'vitest';
import { prompt } from '../../../spec/support/host-fixture.js';
import { agentDef } from '../../../spec/support/scripted-agents.js';
import { verifies } from '../../../spec/verifies.js';
import { LoopError } from '../../base/errors.js';
import { Registry } from '../registry.js';
import { parseReference } from './reference.js';

const allowed: readonly [text: string, reference: object][] = [
  ['guide.md', { kind: 'path', path: 'guide.md' }],
  ['./guide.md', { kind: 'path', path: 'guide.md' }],
  ['docs/how to (2).md', { kind: 'path', path: 'docs/how to (2).md' }],
  ['skill:refunds', { kind: 'skill', name: 'refunds' }],
  ['skill:a.b_c-d', { kind: 'skill', name: 'a.b_c-d' }],
  ['receipt:ada.t1', { kind: 'receipt', turn: 'ada.t1' }],
];

for (const [text, reference] of allowed)
  verifies('context.references', `${text} is allowed`, () => {
    expect(parseReference(text)).toEqual(reference);
  });

const refused = [
  ['', 'empty'],
  [' ', 'empty'],
  ['../x.md', '".."'],
  ['a/../../x.md', '".."'],
  ['a/..', '".."'],
  ['/etc/passwd', 'absolute'],
  ['.//etc/passwd', 'absolute'],
  ['//host/share', 'absolute'],
  ['C:\\x.md', 'hidden character'],
  ['C:/x.md', 'scheme'],
  ['https://example.com/x.md', 'scheme'],
  ['file:///etc/passwd', 'scheme'],
  ['data:text/plain,x', 'scheme'],
  ['a\\..\\x.md', 'hidden character'],
  ['.env', 'hidden file'],
  ['a/.git/config', 'hidden file'],
  ['./.env', 'hidden file'],
  ['././x.md', 'hidden file'],
  ['a//b.md', 'empty or padded'],
  ['a/', 'empty or padded'],
  ['a/ b.md', 'empty or padded'],
  ['a\0.md', 'hidden character'],
  ['a\n.md', 'hidden character'],
  ['a\u202egnp.md', 'hidden character'],
  ['skill:', 'skill:NAME'],
  ['skill:../x', 'skill:NAME'],
  ['skill:a/b', 'skill:NAME'],
  ['skill:.x', 'skill:NAME'],
  ['skill:a.', 'skill:NAME'],
  ['receipt:', 'receipt:TURN'],
  ['receipt:x', 'receipt:TURN'],
  ['receipt:a/b.c', 'receipt:TURN'],
  ['x'.repeat(401), 'longer'],
] as const;

for (const [text, reason] of refused)
  verifies('context.references', `${JSON.stringify(text.slice(0, 40))} is refused`, () => {
    expect(parseReference(text)).toMatchObject({ kind: 'invalid', reason: expect.stringContaining(reason) });
  });

verifies('context.references', 'whatever its text, an accepted path stays below its directory', () => {
  const piece = fc.oneof(fc.constantFrom('..', '.', '/', '\\', ':', '~', '%2e%2e', 'a', ' ', '\0', '.x'), fc.string());
  fc.assert(
    fc.property(fc.array(piece, { maxLength: 8 }), (pieces) => {
      const text = pieces.join('');
      const reference = parseReference(text);
      if (reference.kind !== 'path') return;
      const inside = relative('/base', resolve('/base', reference.path));
      expect(inside.startsWith('..') || isAbsolute(inside) || inside === '', `${text} leaves its directory`).toBe(
        false,
      );
      expect(join('/base', reference.path)).toBe(`/base/${reference.path}`);
    }),
    { numRuns: 2000 },
  );
});

function issueOf(contextSkills: unknown, kind: 'agent' | 'prompt'): LoopError | undefined {
  const list = contextSkills as readonly string[];
  const definition =
    kind === 'agent'
      ? agentDef('helper', { contextSkills: list })
      : prompt('ask', 'Hello', { prompt: { template: 'Hello', contextSkills: list } });
  try {
    new Registry().add(definition);
    return undefined;
  } catch (thrown) {
    if (thrown instanceof LoopError) return thrown;
    throw thrown;
  }
}

const lists: readonly [promise: string, value: unknown, reason: string | undefined][] = [
  ['twelve references are accepted', Array.from({ length: 12 }, (_, n) => `${n}.md`), undefined],
  [
    'thirteen references are refused',
    Array.from({ length: 13 }, (_, n) => `${n}.md`),
    '13 elements; the maximum is 12',
  ],
  ['a repeated reference is refused', ['a.md', 'b.md', './a.md'], '"./a.md" repeats "a.md"'],
  ['a path that leaves the directory is refused', ['a.md', '../b.md'], '"../b.md" has ".."'],
  ['a text in place of a list is refused', 'a.md', 'must be a list'],
  ['a number is refused', [1], 'must be text'],
];

for (const kind of ['agent', 'prompt'] as const)
  for (const [promise, value, reason] of lists)
    verifies('context.references', `${kind}: ${promise} when it is registered`, () => {
      const issue = issueOf(value, kind);
      expect(issue?.code).toBe(reason === undefined ? undefined : 'DEFINITION_INVALID');
      if (reason !== undefined) expect(issue?.message).toContain(reason);
    });
