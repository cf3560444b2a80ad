import { expect } from 'vitest';
import { verifies } from '../../../spec/verifies.js';
import { renderTable } from './table.js';
import { widthOf } from './terminal-text.js';

const rows = [
  ['hello', '1.0.0', 'prompt', 'Greets a person by name'],
  ['retrieve-passages', '10.2.0', 'tool', 'Finds passages'],
];

verifies('cli.tree', 'columns are aligned, and lines have no trailing spaces', () => {
  const head = ['LOOP', 'VERSION', 'KIND', 'ABOUT'];
  expect(renderTable(rows, { width: 80, head, align: ['left', 'right'] })).toBe(
    [
      'LOOP               VERSION  KIND    ABOUT',
      'hello                1.0.0  prompt  Greets a person by name',
      'retrieve-passages   10.2.0  tool    Finds passages',
    ].join('\n'),
  );
  expect(
    renderTable(
      [
        ['a', ''],
        ['bc', '1'],
      ],
      { width: 80 },
    ),
  ).toBe('a\nbc  1');
  expect(
    renderTable(
      [
        ['東京', '1'],
        ['abcde', '2'],
      ],
      { width: 80 },
    ),
  ).toBe('東京   1\nabcde  2');
  expect(renderTable([], { width: 80 })).toBe('');
});

verifies('cli.tree', 'a table is never wider than the terminal', () => {
  expect(renderTable(rows, { width: 44 }).split('\n')[0]).toBe('hello          1.0.0   prompt  Greets a per…');
  const long = ['x'.repeat(500), 'y'.repeat(500), 'z'];
  for (const width of [1, 5, 20, 60]) {
    for (const line of renderTable([...rows, long], { width }).split('\n'))
      expect(widthOf(line)).toBeLessThanOrEqual(width);
  }
});

verifies('cli.tree', 'a cell cannot control the terminal, and its colour does not count as width', () => {
  const colored = renderTable(
    [
      [['ok', 'green'], 'a\u001b[2J\nb'],
      ['error', 'c'],
    ],
    { width: 40, color: true, head: ['S', 'T'] },
  );
  expect(colored.split('\n')).toEqual([
    '\u001b[2mS\u001b[22m      \u001b[2mT\u001b[22m',
    '\u001b[32mok\u001b[39m     a\\x1b[2J⏎b',
    'error  c',
  ]);
});

verifies('cli.tree', 'all columns of the list of turns are visible in 60 columns', () => {
  const head = ['TURN', 'LOOP', 'STATUS', 'STARTED', 'TOOK', ''];
  const row = ['s-7ed8f1cbc2a8ee93.1', 'summarise-article@1.0.0', 'interrupted', '12 min ago', '1.24 s', ''];
  const [first, second] = renderTable([row], { width: 60, head }).split('\n');
  for (const name of head) expect(first).toContain(name);
  expect(second).toMatch(/^s-7ed8f.*… {2}summari.*… {2}interr.*1[.]24 s$/);
  expect(widthOf(second ?? '')).toBeLessThanOrEqual(60);
});
