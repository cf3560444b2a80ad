import { expect } from 'vitest';
import { verifies } from '../../spec/verifies.js';
import { approvalText } from './approval-text.js';

verifies('aisdk.chat', 'the question of an approval is read from a tool part, and nothing else is', () => {
  const descriptor = { description: 'Refund 5?' };
  expect(approvalText({ type: 'tool-refund', approval: { id: 'a', descriptor } })).toBe('Refund 5?');
  const others = [
    { type: 'text' },
    { approval: null },
    { approval: { descriptor: 'x' } },
    { approval: { descriptor: { description: 5 } } },
  ];
  expect(others.map(approvalText)).toEqual(others.map(() => undefined));
});
