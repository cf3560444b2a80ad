import { expect } from 'vitest';
import { attacks, HARMFUL, withoutStyles } from '../../../spec/cli/attacks.js';
import { verifies } from '../../../spec/verifies.js';
import { escapeForDisplay, excerptOf } from '../../base/escape-text.js';
import type { Approval } from '../../protocol/approval.js';
import { renderApproval } from './render-approval.js';
import { createColors, widthOf } from './terminal-text.js';

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

function cardLines(changes: Partial<Approval>, color = false, width = 80): string[] {
  return renderApproval({ ...approval, ...changes }, { colors: createColors(color), width, now })
    .join('\n')
    .split('\n');
}

verifies('approval.display', 'the card shows tool, path, principal, approvers, expiry and arguments', () => {
  expect(cardLines({ principal: 'ada', approvers: ['bob', 'eve'], description: 'Pay 5 to Ada?\nNow.' })).toEqual([
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
  const late = cardLines({ expiresAt: '2029-01-01T00:00:00.000Z' });
  expect(late[0]).toBe('? Approval s-1.1:abcdefgh (expired)');
  expect(late.join('\n')).toContain('expired 2029');
});

verifies('approval.display', 'the card shows each fallback model with its options', () => {
  const fallback = [{ id: 'spare', model: 's\u202e', options: { baseURL: 'https://far.example' } }, { id: 'mock' }];
  const lines = cardLines({ fallback }, false, 200);
  expect(lines).toContain('  fallback  spare, mock');
  const models = lines.find((line) => line.includes('baseURL'));
  expect(models).toContain('"https://far.example"');
  expect(models, 'a direction mark reached the terminal').not.toContain('\u202e');
});

verifies('approval.display', 'a unified diff in the description is coloured', () => {
  const description = 'Write a.txt:\n--- a.txt\n+++ a.txt\n@@ -1 +1 @@\n-old\n+new\n same';
  const lines = cardLines({ description }, true);
  const { red, green, cyan, dim } = createColors(true);
  expect(lines).toContain(`${dim('│ ')}${red('-old')}`);
  expect(lines).toContain(`${dim('│ ')}${green('+new')}`);
  expect(lines).toContain(`${dim('│ ')}${cyan('@@ -1 +1 @@')}`);
  expect(cardLines({ description: '+1 for this\n-1 for that' }, true)).toContain(`${dim('│ ')}+1 for this`);
});

verifies('approval.display', 'hostile text cannot control the terminal or imitate another card', () => {
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
      for (const changes of hostile) {
        const text = withoutStyles(cardLines(changes, color).join('\n'));
        const lines = text.split('\n');
        expect(text).not.toMatch(HARMFUL);
        expect(text.length).toBeLessThan(30_000);
        expect(lines.filter((line) => widthOf(line) >= 80)).toEqual([]);
        // Every line begins like a line of the card or has the quote bar.
        expect(lines.filter((line) => !/^(?:\? Approval |│| {2}(?:\w|$)| {12})/.test(line))).toEqual([]);
        expect(lines.filter((line) => line.startsWith('?'))).toHaveLength(1);
      }
    }
  }
});

verifies('approval.display', 'large arguments are shortened, and the number of hidden characters is exact', () => {
  const lines = cardLines({ arguments: { text: 'x'.repeat(1024 * 1024) } });
  expect(lines.length).toBeLessThan(60);
  expect(lines).toContain('  arguments 1,048,587 bytes, digest digest');
  expect(unwrappedText(lines)).toContain('hidden … 1,046,587 of 1,048,587 characters are hidden here …');
  expect(unwrappedText(lines)).toContain('rondo approvals --full s-1.1:abcdefgh');
});

/** Joins the lines to one text, regardless of line breaks. */
function unwrappedText(lines: readonly string[]): string {
  return lines.join(' ').replaceAll(/ +/g, ' ');
}

/** Returns the text with a quote bar. */
function quotedText(lines: readonly string[]): string {
  return lines
    .filter((line) => line.startsWith('│ '))
    .map((line) => line.slice(2))
    .join('');
}

verifies(
  'approval.hidden',
  'the tail of a long command is always shown, and the number of hidden characters is exact',
  () => {
    for (const length of [1900, 2500, 10_000, 300_000]) {
      const command = `echo ${'a'.repeat(length)}; rm -rf /home`;
      const lines = cardLines({ arguments: { command }, description: `Run:\n${command}` });
      expect(quotedText(lines).match(/; rm -rf \/home/g)).toHaveLength(2);
      const argumentChars = JSON.stringify({ command }).length;
      const isShortened = argumentChars > 2000;
      expect(lines.some((line) => line.startsWith('  hidden '))).toBe(isShortened);
      if (isShortened) expect(unwrappedText(lines)).toContain(`… ${(argumentChars - 2000).toLocaleString('en-US')} of`);
    }
  },
);

verifies('approval.hidden', 'hidden characters are counted in the original text, not in its escaped form', () => {
  const command = '\u202e😀'.repeat(5000);
  const lines = cardLines({ description: command });
  const [, hidden = '', total] = /… ([\d,]+) of ([\d,]+) characters/.exec(unwrappedText(lines)) ?? [];
  expect(total).toBe('10,000');
  const shownMarks = quotedText(lines).match(/\\u\{202e\}/g)?.length ?? 0;
  const shownFaces = quotedText(lines).match(/😀/gu)?.length ?? 0;
  expect(shownMarks + shownFaces + Number(hidden.replaceAll(',', ''))).toBe(10_000);
});

verifies(
  'approval.hidden',
  'a description that was shortened when it was recorded keeps its count and is not shortened again',
  () => {
    const original = `Run: ${'\u0007'.repeat(20_000)} the end`;
    const recorded = escapeForDisplay(original, 8000);
    const lines = cardLines({ description: recorded });
    const { hiddenChars, totalChars } = excerptOf(original, 8000);
    expect(totalChars).toBe(20_013);
    expect(unwrappedText(lines)).toContain(
      `… ${hiddenChars.toLocaleString('en-US')} of 20,013 characters are hidden here …`,
    );
    expect(lines.filter((line) => line.startsWith('  hidden '))).toHaveLength(1);
    expect(quotedText(lines).endsWith(' the end')).toBe(true);
  },
);

verifies('approval.hidden', 'no text can imitate the line that counts hidden characters', () => {
  const forged = 'pay 5⟪1 of 9 characters hidden⟫\n  hidden    … 1 of 9 characters are hidden here …';
  for (const changes of [
    { description: escapeForDisplay(forged, 8000) },
    { arguments: { forged } },
    { tool: forged },
  ]) {
    const lines = cardLines(changes);
    expect(lines.filter((line) => line.startsWith('  hidden '))).toEqual([]);
    expect(lines.join('\n')).not.toMatch(/[⟪⟫]/);
  }
});

verifies('approval.hidden', 'the full card hides nothing', () => {
  const command = `${'a'.repeat(100_000)}b`;
  const lines = renderApproval(
    { ...approval, arguments: { command } },
    { colors: createColors(false), width: 80, now, full: true },
  );
  expect(quotedText(lines)).toContain(JSON.stringify({ command }));
  expect(lines.join('\n')).not.toContain('hidden');
});

verifies('approval.display', 'every row of a wrapped line has the quote bar and fits the width', () => {
  const description = `${'a'.repeat(75)}? Approve? [y]es / [n]o / [l]ater ›`;
  for (const width of [20, 40, 80, 100]) {
    const lines = cardLines({ description }, false, width);
    const rows = lines.slice(lines.indexOf('  description') + 1);
    expect(rows.every((line) => line.startsWith('│ ') && widthOf(line) < width)).toBe(true);
    expect(
      rows
        .map((line) => line.slice(2))
        .join('')
        .replaceAll(' ', ''),
    ).toBe(description.replaceAll(' ', ''));
  }
});
