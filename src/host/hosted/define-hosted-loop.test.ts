import { expect } from 'vitest';
import { fullHostedLoop, smallestHostedLoop } from '../../../spec/support/random-hosted-documents.js';
import { verifies } from '../../../spec/verifies.js';
import { defineLoop } from '../../loops/define.js';
import type { HostedProjection } from '../../protocol/hosted-loop.js';
import { defineHostedLoop } from './define-hosted-loop.js';
import { hostedLoopDigest, parseHostedLoop } from './hosted-document.js';

const count = defineLoop({
  id: 'count',
  input: { type: 'object', properties: { n: { type: 'number' } }, required: ['n'] },
  output: true,
  run: async ({ n }) => n + 1,
});

const settings = { id: 'counts', grant: { allowedTools: [], limits: {} }, stop: { maxTurns: 3 } } as const;

verifies(
  'hosted.document',
  'a hosted loop in code has the document, and the digest, of a file with the same content',
  () => {
    const { document, next, loop } = defineHostedLoop(fullHostedLoop);
    expect(document).toEqual(fullHostedLoop);
    expect(hostedLoopDigest(document)).toBe(hostedLoopDigest(parseHostedLoop(fullHostedLoop)));
    expect([next, loop]).toEqual([undefined, undefined]);
  },
);

verifies(
  'hosted.document',
  'a function and a loop in code are kept beside the document, which has the id of the loop',
  () => {
    const next = ({ turn }: HostedProjection) => ({ n: turn });
    const hosted = defineHostedLoop({ ...settings, loop: count, input: { n: 0 }, next });
    expect(hosted.document).toEqual({ ...settings, loop: 'count', input: { n: 0 } });
    expect(hosted.next).toBe(next);
    expect(hosted.loop).toBe(count);
    expect(Object.isFrozen(hosted)).toBe(true);
  },
);

verifies('hosted.document', 'input and next of a hosted loop in code have the type of the input of its loop', () => {
  // @ts-expect-error The input needs a number.
  defineHostedLoop({ ...settings, loop: count, input: { n: 'one' } });
  // @ts-expect-error So does the next one.
  defineHostedLoop({ ...settings, loop: count, input: { n: 1 }, next: () => ({ n: 'two' }) });
  // @ts-expect-error A function returns the value itself.
  defineHostedLoop({ ...settings, loop: count, input: { n: 1 }, next: async () => ({ n: 2 }) });
  defineHostedLoop({ ...settings, loop: 'count', input: { anything: true }, next: () => ['anything'] });
});

verifies('hosted.document', 'a hosted loop in code is checked like a file', () => {
  const define = defineHostedLoop as (definition: object) => unknown;
  const { stop: _, ...unbounded } = smallestHostedLoop;
  expect(() => define(unbounded)).toThrow('/stop: is missing: a hosted loop always has a maximum of turns');
  expect(() => define({ ...smallestHostedLoop, nxt: () => 1 })).toThrow('defineHostedLoop("smallest") is not a valid');
  expect(() => define({ ...smallestHostedLoop, loop: undefined })).toThrow('/loop: is required');
  expect(() => define({ ...smallestHostedLoop, loop: {} })).toThrow('/loop: is required');
  expect(() => define({ ...smallestHostedLoop, input: new Date(0) })).toThrow('/input: is a date');
});
