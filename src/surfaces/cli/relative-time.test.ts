import { expect } from 'vitest';
import { verifies } from '../../../spec/verifies.js';
import { relativeTime, timeWithAge } from './relative-time.js';

const NOW = Date.parse('2026-11-17T14:00:00Z');
const ago = (seconds: number): string => relativeTime(new Date(NOW - seconds * 1000).toISOString(), NOW);

verifies('cli.times', 'a time is shown as how long ago it is, and an old or future one as a date', () => {
  expect([0, 4, 5, 59, 60, 3599, 3600, 100_000, 180_000].map(ago)).toEqual([
    'just now',
    'just now',
    '5 s ago',
    '59 s ago',
    '1 min ago',
    '59 min ago',
    '1 h ago',
    '27 h ago',
    '2 d ago',
  ]);
  expect(ago(61 * 86_400)).toBe('2026-09-17');
  expect(ago(-3600)).toBe('2026-11-17');
  expect(ago(-1)).toBe('just now');
  expect(relativeTime('nonsense', NOW)).toBe('nonsense');
  expect(timeWithAge('2026-11-17T13:56:59.123Z', NOW)).toBe('2026-11-17 13:56:59 UTC (3 min ago)');
});
