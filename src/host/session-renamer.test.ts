import fc from 'fast-check';
import { expect } from 'vitest';
import { verifies } from '../../spec/verifies.js';
import type { Entry } from '../protocol/entry.js';
import type { Json } from '../protocol/json.js';
import { SessionRenamer } from './session-renamer.js';

const renamer = new SessionRenamer(
  new Map([
    ['ada.1', 's-new.1'],
    ['ada.k-x:y', 's-new.k-x:y'],
  ]),
);
const entry = (members: Partial<Entry>): Entry => ({ seq: 1, at: 2, type: 'x', key: 'k', ...members });
const renamed = (text: string): Json | undefined => renamer.entry(entry({ value: text })).value;

const references: readonly [text: string, expected: string][] = [
  ['ada.1', 's-new.1'],
  ['ada.1/0/12', 's-new.1/0/12'],
  ['ada.1/0~2', 's-new.1/0~2'],
  ['ada.1:mJ4hLvYtC7DuK1Y0', 's-new.1:mJ4hLvYtC7DuK1Y0'],
  ['ada.k-x:y', 's-new.k-x:y'],
  ['ada.k-x:y/3', 's-new.k-x:y/3'],
  ['ada.k-x:y:abc', 's-new.k-x:y:abc'],
];

for (const [text, expected] of references)
  verifies('fork.copy', `${text} is renamed wherever it is a value of its own`, () => {
    expect(renamed(text)).toBe(expected);
    expect(renamer.entry(entry({ value: { a: [{ b: text }], [text]: 1 } })).value).toEqual({
      a: [{ b: expected }],
      [text]: 1,
    });
  });

for (const text of [
  'ada',
  'ada.2',
  'ada.1.2',
  'ada.1/x',
  'ada.1/0/',
  'see ada.1',
  'ada.1 ',
  'ada.1:',
  'ada.1:a b',
  'bob.1',
  '',
])
  verifies('fork.copy', `${JSON.stringify(text)} is data and is not renamed`, () => {
    expect(renamed(text)).toBe(text);
  });

const entries: readonly [promise: string, before: Partial<Entry>, after: Partial<Entry>][] = [
  ['the key of a step', { key: 'ada.1/3' }, { key: 's-new.1/3' }],
  ['the key of a fact', { key: '#ada.1' }, { key: '#s-new.1' }],
  ['the key of a grant', { key: '#ada.1:abc' }, { key: '#s-new.1:abc' }],
  ['an attempt', { attemptKey: 'ada.1/0/1' }, { attemptKey: 's-new.1/0/1' }],
  ['the turn of a signal', { turnId: 'ada.1' }, { turnId: 's-new.1' }],
  ['the delivery of a signal', { key: 'signal ada.1 a b' }, { key: 'signal s-new.1 a b' }],
  ['no delivery to a session', { key: 'signal  ada.1' }, { key: 'signal  ada.1' }],
  ['the signal of a wait', { signalId: 'approval ada.1:abc' }, { signalId: 'approval s-new.1:abc' }],
  ['the name of a wait', { type: 'wait.opened', name: 'approval ada.1:abc' }, { name: 'approval s-new.1:abc' }],
  ['not the name of a loop', { type: 'call.started', name: 'ada.1' }, { name: 'ada.1' }],
  ['the keys of a retry', { value: { keys: ['ada.1', 'ada.1/0'] } }, { value: { keys: ['s-new.1', 's-new.1/0'] } }],
  [
    'the data of an error, and not its message',
    { error: { code: 'X', message: 'ada.1', data: { key: 'ada.1/0' } } },
    { error: { code: 'X', message: 'ada.1', data: { key: 's-new.1/0' } } },
  ],
  [
    'a discarded signal',
    { type: 'signal.discarded', key: 'signal ada.1 $&', waitKey: 'ada.1/0', reason: 'Signal "signal ada.1 $&"' },
    { key: 'signal s-new.1 $&', waitKey: 's-new.1/0', reason: 'Signal "signal s-new.1 $&"' },
  ],
];

for (const [promise, before, after] of entries)
  verifies('fork.copy', `a copy renames ${promise}`, () => {
    expect(renamer.entry(entry(before))).toEqual(entry({ ...before, ...after }));
  });

verifies('fork.copy', 'values without an id of the session are copied as they are', () => {
  fc.assert(
    fc.property(fc.jsonValue(), (value) => {
      expect(renamer.entry(entry({ value: value as Json }))).toEqual(entry({ value: value as Json }));
    }),
  );
});
