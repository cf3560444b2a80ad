import { expect } from 'vitest';
import { verifies } from '../../spec/verifies.js';
import { withLazyProperty } from './lazy-property.js';

interface Options {
  id: string;
  signal: string;
}

/** Options with a lazy signal, and how often it was computed. */
function counted(): { readonly options: Options; computations(): number } {
  let computed = 0;
  const options = withLazyProperty<Options, 'signal'>({ id: 'a', signal: '' }, 'signal', () => {
    computed += 1;
    return 'stop';
  });
  return { options, computations: () => computed };
}

verifies('looops.tool.factory', 'the signal of a tool call is created only when the tool reads it', () => {
  const { options, computations } = counted();
  const { id } = options;
  expect([id, 'signal' in options, Reflect.ownKeys(options), computations()]).toEqual(['a', true, ['id', 'signal'], 0]);
  expect([options.signal, options.signal, computations()]).toEqual(['stop', 'stop', 1]);
});

const COMPLETE = { id: 'a', signal: 'stop' };

const copies: readonly ((options: Options) => unknown)[] = [
  (options) => ({ ...options }),
  ({ id, signal }) => ({ id, signal }),
  (options) => Object.assign({}, options),
  (options) => Object.fromEntries(Object.entries(options)),
  (options) => Object.freeze(options),
  (options) => Object.seal(options),
  (options) => ({ ...Object.freeze(options) }),
  (options) => Object.defineProperties({}, Object.getOwnPropertyDescriptors(options)),
  (options) => JSON.parse(JSON.stringify(options)),
  (options) => Object.assign(options, { id: 'a' }),
];

verifies('looops.tool.factory', 'options that a tool copies or passes on keep the signal', () => {
  for (const copy of copies) expect(copy(counted().options), String(copy)).toEqual(COMPLETE);
});

verifies('looops.tool.factory', 'a tool can replace or delete the signal', () => {
  expect(Object.assign(counted().options, { signal: 'mine' })).toEqual({ id: 'a', signal: 'mine' });
  expect(Object.defineProperty(counted().options, 'signal', { value: 'mine' }).signal).toBe('mine');
  const { options } = counted();
  Reflect.deleteProperty(options, 'signal');
  expect(Object.keys(options)).toEqual(['id']);
  expect(options.signal).toBeUndefined();
});
