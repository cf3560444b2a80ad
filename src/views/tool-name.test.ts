import fc from 'fast-check';
import { expect } from 'vitest';
import { verifies } from '../../spec/verifies.js';
import { toolNameOf } from './tool-name.js';

const FITS = /^[A-Za-z0-9_-]{1,64}$/;

/** Texts of few characters, most of which the encoding itself uses, so that two of them are often nearly the same name. */
const near = fc
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

verifies('agent.names', 'every name is one that providers take, and an id that is one is its own name', () => {
  for (const text of [near, fc.string({ maxLength: 300 }), fc.string({ unit: 'binary', maxLength: 300 })]) {
    fc.assert(
      fc.property(text, (id) => {
        const name = toolNameOf(id);
        expect(name).toMatch(FITS);
        expect(toolNameOf(id)).toBe(name);
        if (FITS.test(id)) expect(name).toBe(id);
      }),
      { numRuns: 500 },
    );
  }
});

verifies('agent.names', 'two ids that are not names themselves never have one name', () => {
  fc.assert(
    fc.property(fc.array(near, { minLength: 2, maxLength: 40 }), (ids) => {
      const others = [...new Set(ids)].filter((id) => !FITS.test(id));
      expect(new Set(others.map(toolNameOf)).size).toBe(others.length);
    }),
    { numRuns: 1000 },
  );
  const long = Array.from({ length: 1000 }, (_, nth) => `${'x'.repeat(80)}${nth}/${'y'.repeat(80)}`);
  expect(new Set(long.map(toolNameOf)).size).toBe(1000);
});
