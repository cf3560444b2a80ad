import fc from 'fast-check';
import { expect } from 'vitest';
import { verifies } from '../../spec/verifies.js';
import { toolNameOf } from './tool-name.js';

const VALID_NAME = /^[A-Za-z0-9_-]{1,64}$/;

/** Texts from the characters that the escaping itself uses, so that different ids have similar names. */
const similarIds = fc
  .array(fc.constantFrom('_', '__', '/', '.', '2F', '_2F_', '5F', 'a', '-', ' ', 'é', '😀'), {
    maxLength: 8,
  })
  .map((parts) => parts.join(''));

verifies('agent.names', 'the name of an id is the same in every version', () => {
  const names: readonly [id: string, name: string][] = [
    ['greet', 'greet'],
    ['write_file', 'write_file'],
    ['_x', '_x'],
    ['-', '-'],
    ['a__b', 'a__b'],
    ['summarize_2F_v1', 'summarize_2F_v1'],
    ['summarize/v1', 'summarize_2F_v1'],
    ['fs.read', 'fs_2E_read'],
    ['a_b/c', 'a__b_2F_c'],
    ['@scope/name', '_40_scope_2F_name'],
    ['say hello', 'say_20_hello'],
    ['größe', 'gr_F6__DF_e'],
    ['日本', '_65E5__672C_'],
    ['😀', '_1F600_'],
    ['a'.repeat(64), 'a'.repeat(64)],
    ['a'.repeat(65), 'aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa-Y1NhxIu56rFBmOduqKt_'],
  ];
  expect(names.map(([id]) => [id, toolNameOf(id)])).toEqual(names);
});

verifies('agent.names', 'every name is valid for providers, and a valid id is its own name', () => {
  for (const text of [similarIds, fc.string({ maxLength: 300 }), fc.string({ unit: 'binary', maxLength: 300 })]) {
    fc.assert(
      fc.property(text, (id) => {
        const name = toolNameOf(id);
        expect(name).toMatch(VALID_NAME);
        expect(toolNameOf(id)).toBe(name);
        if (VALID_NAME.test(id)) expect(name).toBe(id);
      }),
      { numRuns: 500 },
    );
  }
});

verifies('agent.names', 'different ids that need escaping have different names', () => {
  fc.assert(
    fc.property(fc.array(similarIds, { minLength: 2, maxLength: 40 }), (ids) => {
      const escapedIds = [...new Set(ids)].filter((id) => !VALID_NAME.test(id));
      expect(new Set(escapedIds.map(toolNameOf)).size).toBe(escapedIds.length);
    }),
    { numRuns: 1000 },
  );
  const longIds = Array.from({ length: 1000 }, (_, index) => `${'x'.repeat(80)}${index}/${'y'.repeat(80)}`);
  expect(new Set(longIds.map(toolNameOf)).size).toBe(1000);
});
