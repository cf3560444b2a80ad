import { expect } from 'vitest';
import { attacks, bare, HARMFUL } from '../../../spec/cli/attacks.js';
import { verifies } from '../../../spec/verifies.js';
import type { Approval } from '../../protocol/approval.js';
import { cardOf } from './card.js';
import { paint, widthOf } from './paint.js';

const approval: Approval = {
  id: 's-1.1:abcdefgh',
  sessionId: 's-1',
  turnId: 's-1.1',
  callId: 's-1.1/2/0/0',
  tool: 'pay',
  arguments: { amount: 5 },
  argumentsDigest: 'digest',
  definitionDigest: 'other',
  description: 'Pay 5?',
  requestedAt: '2030-01-01T00:00:00.000Z',
  expiresAt: '2030-02-01T00:00:00.000Z',
  path: ['agent', 'clerk', 'pay'],
};

const now = Date.parse('2030-01-02T00:00:00Z');

function card(more: Partial<Approval>, color = false, width = 80): string[] {
  return cardOf({ ...approval, ...more }, { colors: paint(color), width, now })
    .join('\n')
    .split('\n');
}

verifies('approval.display', 'a person is not shown what would run, or with what', () => {
  expect(card({ principal: 'ada', approvers: ['bob', 'eve'], description: 'Pay 5 to Ada?\nNow.' })).toEqual([
    '? Approval s-1.1:abcdefgh',
    '  tool      pay',
    '  path      agent › clerk › pay',
    '  for       ada',
    '  only by   bob, eve',
    '  asked     2030-01-01T00:00:00.000Z, expires 2030-02-01T00:00:00.000Z',
    '  arguments 12 bytes, digest digest',
    '│ {"amount":5}',
    '  description',
    '│ Pay 5 to Ada?',
    '│ Now.',
  ]);
  const late = card({ expiresAt: '2029-01-01T00:00:00.000Z' });
  expect(late[0]).toBe('? Approval s-1.1:abcdefgh (expired)');
  expect(late.join('\n')).toContain('expired 2029');
});

verifies('approval.display', 'a diff that is to be approved cannot be read as one', () => {
  const description = 'Write a.txt:\n--- a.txt\n+++ a.txt\n@@ -1 +1 @@\n-old\n+new\n same';
  const lines = card({ description }, true);
  const { red, green, cyan, dim } = paint(true);
  expect(lines).toContain(`${dim('│ ')}${red('-old')}`);
  expect(lines).toContain(`${dim('│ ')}${green('+new')}`);
  expect(lines).toContain(`${dim('│ ')}${cyan('@@ -1 +1 @@')}`);
  expect(card({ description: '+1 for this\n-1 for that' }, true)).toContain(`${dim('│ ')}+1 for this`);
});

verifies('approval.display', 'an approval clears the screen, hides what it does, or looks like a second one', () => {
  expect(attacks.length).toBeGreaterThan(100);
  for (const attack of attacks) {
    const hostile: Partial<Approval>[] = [
      { description: attack },
      { arguments: { to: attack } },
      { arguments: { [attack]: 1 } },
      { tool: attack, path: ['agent', attack] },
      { id: attack, argumentsDigest: attack, principal: attack, approvers: [attack, 'bob'] },
    ];
    for (const color of attack.length > 100_000 ? [false] : [false, true]) {
      for (const more of hostile) {
        const text = bare(card(more, color).join('\n'));
        const lines = text.split('\n');
        expect(text).not.toMatch(HARMFUL);
        expect(text.length).toBeLessThan(30_000);
        expect(lines.filter((line) => widthOf(line) >= 80)).toEqual([]);
        // Whatever does not begin as a line of the card does stands behind the bar.
        expect(lines.filter((line) => !/^(?:\? Approval |│| {2}(?:\w|$)| {12})/.test(line))).toEqual([]);
        expect(lines.filter((line) => line.startsWith('?'))).toHaveLength(1);
      }
    }
  }
});

verifies('approval.display', 'arguments of a megabyte fill the screen, or are cut without a word', () => {
  const lines = card({ arguments: { text: 'x'.repeat(1024 * 1024) } });
  expect(lines.length).toBeLessThan(60);
  expect(lines).toContain('  arguments 1.0M bytes, digest digest');
  expect(lines.join('\n')).toContain('Only the first 2,000 characters are shown');
});

verifies('approval.display', 'what a long line is broken into begins where only our own words may', () => {
  const description = `${'a'.repeat(75)}? Approve? [y]es / [n]o / [l]ater ›`;
  for (const width of [20, 40, 80, 100]) {
    const from = card({ description }, false, width).indexOf('  description');
    const shown = card({ description }, false, width).slice(from + 1);
    expect(shown.every((line) => line.startsWith('│ ') && widthOf(line) < width)).toBe(true);
    expect(
      shown
        .map((line) => line.slice(2))
        .join('')
        .replaceAll(' ', ''),
    ).toBe(description.replaceAll(' ', ''));
  }
});
