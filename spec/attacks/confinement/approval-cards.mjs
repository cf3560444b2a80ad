// Approvals whose arguments are too long to display: the displayed part and the stated number of hidden characters must
// add up to all of the arguments.

import { expect } from '../../support/store-attack.mjs';

const codePoints = (text) => [...text].length;

/** Functions that return `n` characters of one kind, for the arguments. */
const contents = {
  letters: (n) => 'abcdefghij'.repeat(Math.ceil(n / 10)).slice(0, n),
  pairs: (n) => '\u{1f600}'.repeat(n),
  unseen: (n) => '\u202e\u200b'.repeat(Math.ceil(n / 2)).slice(0, n),
  marks: (n) => '\u27ea1-of-2-characters-hidden\u27eb'.repeat(Math.ceil(n / 28)).slice(0, n),
  claims: (n) =>
    '\\n\u2502\\n..hidden..\u2026.1.of.2.characters.are.hidden.here.\u2026\\n'.repeat(Math.ceil(n / 50)).slice(0, n),
  lonely: (n) => '\ud800x'.repeat(Math.ceil(n / 2)).slice(0, n),
  'line-ends': (n) => 'ab\r\nc\n'.repeat(Math.ceil(n / 6)).slice(0, n),
  wide: (n) => '\u6f22'.repeat(n),
};

/** Parses the arguments in a card: the rows before and after the hidden part, its stated size and the stated total. */
function cardOf(text) {
  const from = text.indexOf('\n  arguments');
  const lines = text
    .slice(from + 1, text.indexOf('\n  description', from))
    .split('\n')
    .slice(1);
  const at = lines.findIndex((line) => line.startsWith('  hidden'));
  const textOfRows = (cardLines) =>
    cardLines
      .filter((line) => line.startsWith('\u2502 '))
      .map((line) => line.slice(2))
      .join('');
  const [, hidden = '0', total = ''] =
    /\u2026 ([\d,]+) of ([\d,]+) characters are hidden here/.exec(lines.join('\n')) ?? [];
  const size = Number(/arguments\s+([\d,]+) bytes/.exec(text)?.[1]?.replaceAll(',', '') ?? Number.NaN);
  const [head, tail] = at < 0 ? [textOfRows(lines), ''] : [textOfRows(lines.slice(0, at)), textOfRows(lines.slice(at))];
  return { head, tail, hidden: Number(hidden.replaceAll(',', '')), total: Number(total.replaceAll(',', '')), size };
}

/** Undoes the escapes of a card. */
const unescapeCard = (text) =>
  text
    .replace(/\\u\{([0-9a-f]+)\}/g, (_, code) => String.fromCodePoint(Number.parseInt(code, 16)))
    .replaceAll('\u2424', '\n');

/** The card of an approval has the start and the end of the arguments and the exact number of hidden characters. */
async function checkCard(fixture, kind, count) {
  fixture.toolLoop('ask', 'builtin:echo', undefined, { policy: { approval: 'ask' } });
  const json = JSON.stringify({ x: contents[kind](count) });
  fixture.file('p/in.json', json);
  const run = await fixture.cli(['run', 'ask', '--session', 'q', '--input', '@in.json']);
  expect(run.code === 2, 'a paused turn', run);
  const { stdout } = await fixture.cli(['approvals', '--session', 'q']);
  const { head, tail, hidden, total, size } = cardOf(stdout);
  const [first, last] = [unescapeCard(head), unescapeCard(tail)];
  expect(json.startsWith(first) && json.endsWith(last), 'the start and the end of the arguments', { first, last });
  expect(codePoints(first) + hidden + codePoints(last) === codePoints(json), 'the exact number of hidden characters', {
    displayed: codePoints(first) + codePoints(last),
    hidden,
    total,
    codePoints: codePoints(json),
  });
  expect(hidden === 0 || total === codePoints(json), 'the exact number of characters', {
    total,
    points: codePoints(json),
  });
  expect(size === Buffer.byteLength(json), 'the exact number of bytes', { size, bytes: Buffer.byteLength(json) });
}

export function cases() {
  const list = [];
  for (const kind of Object.keys(contents)) {
    for (const count of [200, 1990, 2003, 30_000])
      list.push({ id: `output.hidden.${kind}.${count}`, run: (fixture) => checkCard(fixture, kind, count) });
  }
  return list;
}
