import { expect } from 'vitest';
import { verifies } from '../../spec/verifies.js';
import { durationMs } from './duration.js';

verifies('time.text', 'a duration as text has exactly the milliseconds that it names', () => {
  const durations = {
    '500 ms': 500,
    '90s': 90_000,
    '30 seconds': 30_000,
    '2h': 7_200_000,
    '1 hour 30 minutes': 5_400_000,
    '1h30m': 5_400_000,
    '3 days': 259_200_000,
    '2 Weeks': 1_209_600_000,
    ' 1 day  2 h 3 min 4.5 s ': 93_784_500,
    '0.1s': 100,
    '1.1 s': 1100,
    '0 ms': 0,
    '0.000001 weeks': undefined,
  };
  for (const [text, ms] of Object.entries(durations))
    if (ms !== undefined) expect(durationMs(text), text).toBe(ms);
    else expect(() => durationMs(text)).toThrow();
  expect(durationMs(42)).toBe(42);
  expect(durationMs(-1)).toBe(-1);
});

verifies('time.text', 'any other text is refused with examples', () => {
  const wrong = [
    '',
    ' ',
    'soon',
    '3',
    'days',
    '3 dayz',
    '3 months',
    '-3 days',
    '1e3 s',
    '1,5 h',
    '1.5.5 s',
    '30 minutes 1 hour',
    '1h 2h',
    '3 days ago',
    'in 3 days',
    '0.5 ms',
    '9999999999999 weeks',
    `${'0'.repeat(200)}1s`,
    '３ days',
  ];
  for (const text of wrong) {
    expect(() => durationMs(text), text).toThrow(/is not a duration.*'90s'.*'3 days'/);
    expect(() => durationMs(text), text).toThrow(expect.objectContaining({ code: 'VALUE_INVALID' }));
  }
});
