import fc from 'fast-check';
import { expect } from 'vitest';
import { z } from 'zod';
import { hostOf, tool } from '../../../spec/support/host-fixture.js';
import { verifies } from '../../../spec/verifies.js';
import { loopsTool } from '../../protocol/tool.js';
import { isLoopId } from './loop-identity.js';

const valid = [
  'summarize/v1',
  '_x',
  'x_',
  '-x',
  '.hidden',
  'v1.',
  'a..b',
  'a/b.c/d-e',
  '@scope/name',
  'a@b',
  'a@1',
  'mail:send',
  'say hello',
  'a*b',
  '*.a',
  'a#1',
  'a\\b',
  'größe',
  'é',
  '日本語',
  '😀',
  'constructor',
  'a'.repeat(256),
  '😀'.repeat(256),
];

const invalid = [
  '',
  ' ',
  ' a',
  'a ',
  '.',
  '..',
  '../etc',
  'a/..',
  'a/./b',
  '/a',
  'a/',
  'a//b',
  '*',
  'fs.*',
  '__proto__',
  'a@1.0.0',
  'a/b@1.0.0-rc.1',
  'a@10.20.30+build',
  'a\nb',
  'a\tb',
  'a\u0000',
  'a\u007f',
  'a\u00a0b',
  'a\u2028b',
  'a\u200bb',
  'a\u202eb',
  'a\ufeff',
  'a\u3164b',
  'a\u2800b',
  'e\u0301',
  '\ud800',
  'a'.repeat(257),
  '/'.repeat(100_000),
  '@1.'.repeat(100_000),
];

verifies('definition.ids', 'the ids that LSR accepts are valid, except ambiguous ones', () => {
  expect(valid.filter((id) => !isLoopId(id))).toEqual([]);
  expect(invalid.filter(isLoopId)).toEqual([]);
  for (const value of [undefined, null, 7, {}, ['a']]) expect(isLoopId(value)).toBe(false);
});

verifies('definition.ids', 'a loop with any valid id is registered, found, run and replayed under it', async () => {
  const host = hostOf(valid.map((id) => tool(id)));
  for (const id of valid) {
    const result = await host.run({ loop: id, input: { id } });
    expect(result, id).toMatchObject({ status: 'ok', loopId: id, output: { id } });
    expect(await host.replay(result.turnId), id).toMatchObject({ matches: true });
  }
});

verifies('definition.ids', 'loopsTool accepts exactly the valid ids as names', () => {
  const isToolName = (name: string): boolean => {
    try {
      return loopsTool({ name, inputSchema: z.object({}), execute: () => 1 }).name === name;
    } catch {
      return false;
    }
  };
  expect(valid.filter((id) => !isToolName(id))).toEqual([]);
  expect(invalid.filter(isToolName)).toEqual([]);
  const parts = fc
    .array(fc.constantFrom('/', '.', '@', '*', ' ', '1.0.0', '_', 'a', '__proto__', '\u0301', 'e', '\u200b'), {
      maxLength: 6,
    })
    .map((list) => list.join(''));
  for (const text of [parts, fc.string({ unit: 'binary', maxLength: 300 })]) {
    fc.assert(
      fc.property(text, (name) => isToolName(name) === isLoopId(name)),
      { numRuns: 500 },
    );
  }
});
