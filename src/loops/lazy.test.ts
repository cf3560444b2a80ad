import { expect } from 'vitest';
import { verifies } from '../../spec/verifies.js';
import { lazy } from './lazy.js';

interface Options {
  readonly id: string;
  readonly signal: string;
}

/** An object whose signal is counted when it is made. */
function counted(): { readonly options: Options; made(): number } {
  let made = 0;
  const options = lazy<Options, 'signal'>({ id: 'a', signal: '' }, 'signal', () => {
    made += 1;
    return 'stop';
  });
  return { options, made: () => made };
}

verifies(
  'looops.tool.factory',
  'a tool that hands its options on has lost the signal, or every tool pays for it',
  () => {
    const { options, made } = counted();
    const { id } = options;
    expect([id, 'signal' in options, Object.keys(options), made()]).toEqual(['a', true, ['id', 'signal'], 0]);
    const { signal } = options;
    const copies = [{ ...options }, Object.assign({}, options), Object.fromEntries(Object.entries(options))];
    expect(signal).toBe('stop');
    expect(copies).toEqual(Array.from({ length: 3 }, () => ({ id: 'a', signal: 'stop' })));
    expect(made()).toBe(4);
  },
);
