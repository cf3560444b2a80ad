import { expect } from 'vitest';
import { verifies } from '../../spec/verifies.js';
import { withLazyProperty } from './lazy-property.js';

interface Options {
  id: string;
  signal: string;
}

/** An object whose signal is counted when it is made. */
function counted(): { readonly options: Options; made(): number } {
  let made = 0;
  const options = withLazyProperty<Options, 'signal'>({ id: 'a', signal: '' }, 'signal', () => {
    made += 1;
    return 'stop';
  });
  return { options, made: () => made };
}

verifies('looops.tool.factory', 'every tool pays for a signal that it does not look at', () => {
  const { options, made } = counted();
  const { id } = options;
  expect([id, 'signal' in options, Reflect.ownKeys(options), made()]).toEqual(['a', true, ['id', 'signal'], 0]);
  expect([options.signal, options.signal, made()]).toEqual(['stop', 'stop', 1]);
});

const WHOLE = { id: 'a', signal: 'stop' };

const handedOn: readonly ((options: Options) => unknown)[] = [
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

verifies('looops.tool.factory', 'a tool that hands its options on has lost the signal', () => {
  for (const hand of handedOn) expect(hand(counted().options), String(hand)).toEqual(WHOLE);
});

verifies('looops.tool.factory', 'a signal that a tool put in place of another is not the one it goes on with', () => {
  const mine = { id: 'a', signal: 'mine' };
  expect(Object.assign(counted().options, { signal: 'mine' })).toEqual(mine);
  expect(Object.defineProperty(counted().options, 'signal', { value: 'mine' }).signal).toBe('mine');
  const { options } = counted();
  Reflect.deleteProperty(options, 'signal');
  expect(Object.keys(options)).toEqual(['id']);
  expect(options.signal).toBeUndefined();
});
