import { expect } from 'vitest';
import { verifies } from '../../spec/verifies.js';
import { memoryStore } from '../adapters/memory/index.js';
import { seededIds } from '../adapters/system/seeded-ids.js';
import type { Clock } from '../journal/clock.js';
import type { Loop } from '../protocol/body.js';
import type { Entry } from '../protocol/entry.js';
import { Session } from './session.js';

/** Runs a loop once for each input. Returns how often the clock was read, and the durations of the input validations. */
async function validate(
  inputs: readonly string[],
  validationMs: (input: string) => number,
): Promise<{ readonly readings: number; readonly durations: (number | undefined)[] }> {
  let now = 1_000_000;
  let readings = 0;
  const clock: Clock = {
    now: () => {
      readings += 1;
      return now;
    },
    elapsed: () => now,
    sleep: () => Promise.reject(new Error('nothing sleeps')),
  };
  const input = (value: unknown): string => {
    now += validationMs(value as string);
    return value as string;
  };
  const validated: Loop<string, null> = { name: 'validated', input, body: async () => null };
  const each: Loop<null, null> = {
    name: 'each',
    body: async (_, scope) => {
      for (const value of inputs) await scope.call(validated, value);
      return null;
    },
  };
  const entries: Entry[] = [];
  const options = {
    store: memoryStore(),
    clock,
    ids: seededIds(1),
    onEntry: (entry: Entry) => entries.push(entry),
  };
  const session = await Session.open('s', options);
  expect((await session.run('t1', each, null)).status).toBe('ok');
  const durations = entries.filter(({ name }) => name === 'validated').map((entry) => entry.validationMs);
  return { readings, durations };
}

verifies(
  'lsem.6.call.input.validated',
  'a validation of a small value is timed until its validator proves fast',
  async () => {
    const small = Array.from({ length: 300 }, () => 'small');
    const { readings, durations } = await validate(small, () => 0);
    const { readings: slowReadings, durations: slow } = await validate(small, () => 2);
    expect(durations.every((ms) => ms === undefined)).toBe(true);
    expect(slow).toEqual(small.map(() => 2));
    expect(slowReadings - readings).toBe(199);
  },
);

verifies('lsem.6.call.input.validated', 'a large value is timed by a validator that proved fast', async () => {
  const inputs = [...Array.from({ length: 150 }, () => 'small'), 'large'.repeat(1000), 'small'];
  const { durations } = await validate(inputs, (value) => (value === 'small' ? 0 : 7));
  expect(durations.slice(-2)).toEqual([7, undefined]);
});

verifies(
  'lsem.6.call.input.validated',
  'a validator is fast only after a hundred quick validations in a row',
  async () => {
    const inputs = Array.from({ length: 160 }, (_, index) => (index % 50 === 49 ? 'slow' : 'quick'));
    const { durations } = await validate(inputs, (value) => (value === 'slow' ? 3 : 0));
    expect(durations.filter((ms) => ms === 3)).toHaveLength(3);
  },
);
