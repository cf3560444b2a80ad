import { expect } from 'vitest';
import { verifies } from '../../../spec/verifies.js';
import type { CallDetails } from '../../views/call-details.js';
import { CallDetailRows } from './render-details.js';
import { widthOfSpans } from './terminal-text.js';

const call: CallDetails = {
  callId: 't',
  loopId: 'x',
  loopVersion: '1.0.0',
  status: 'ok',
  startedAt: '',
  input: { text: 'word '.repeat(100) },
  output: 'one\n\u001b[31mtwo',
  modelCalls: [
    {
      key: 't/0',
      provider: 'p',
      model: 'm',
      prompt: 'Say it.',
      reply: { text: 'It.', toolCalls: [{ name: 'look', input: '{"at":1}' }], inputTokens: 3, outputTokens: 4 },
    },
  ],
  effects: [],
};

const texts = (rows: CallDetailRows, columns = 60): string[] =>
  rows.rowsOf('t', columns).map((spans) => spans.map(([text]) => text).join(''));

verifies('cli.inspect', 'each value has one row that fits, and shortened values are noticed', () => {
  const rows = new CallDetailRows([call], { maxRows: 1 });
  for (const columns of [30, 60, 100])
    for (const spans of rows.rowsOf('t', columns)) expect(widthOfSpans(spans)).toBeLessThanOrEqual(columns);
  const [input, ...others] = texts(rows);
  expect(input).toMatch(/^input {2}│ \{"text":"word .*…$/);
  expect(others).toEqual(['prompt │ Say it.', 'reply  │ It.', 'calls  │ look {"at":1}', 'output │ one⏎\\u{1b}[31mtwo']);
  expect(rows.hasShortened).toBe(true);
  const short = new CallDetailRows([{ ...call, input: 1 }], { maxRows: 1 });
  expect(texts(short)).toHaveLength(5);
  expect(short.hasShortened).toBe(false);
});

verifies('cli.inspect', 'without a limit every character is shown, with a bar on each row', () => {
  const rows = new CallDetailRows([call], { maxRows: Number.POSITIVE_INFINITY, showsUsage: true });
  const shown = texts(rows);
  expect(shown.every((row) => /^.{7}│ /.test(row))).toBe(true);
  expect(shown.join('').match(/word/g)).toHaveLength(100);
  expect(shown.slice(-3)).toEqual([
    'output │ one',
    '       │ \\u{1b}[31mtwo',
    'usage  │ 1 model call, 3 tokens in, 4 out',
  ]);
  expect(rows.hasShortened).toBe(false);
  const limited = new CallDetailRows([call], { maxRows: 2 });
  expect(texts(limited)[2]).toMatch(/▸ … \d+ more lines$/);
  expect(limited.hasShortened).toBe(true);
});
