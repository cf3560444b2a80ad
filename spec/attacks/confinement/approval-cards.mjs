// Approvals that are too long to show: what is shown, together with what is said to be hidden, must be all of it.

import { expect } from '../../support/store-attack.mjs';

const points = (text) => [...text].length;

/** Characters that arguments are made of. */
const kinds = {
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

/** The parts of the arguments in a card: the rows behind bars, and the number that is hidden. */
function cardOf(text) {
  const from = text.indexOf('\n  arguments');
  const lines = text
    .slice(from + 1, text.indexOf('\n  description', from))
    .split('\n')
    .slice(1);
  const at = lines.findIndex((line) => line.startsWith('  hidden'));
  const rows = (some) =>
    some
      .filter((line) => line.startsWith('\u2502 '))
      .map((line) => line.slice(2))
      .join('');
  const [, hidden = '0', total = ''] =
    /\u2026 ([\d,]+) of ([\d,]+) characters are hidden here/.exec(lines.join('\n')) ?? [];
  const size = Number(/arguments\s+([\d,]+) bytes/.exec(text)?.[1]?.replaceAll(',', '') ?? Number.NaN);
  const [head, tail] = at < 0 ? [rows(lines), ''] : [rows(lines.slice(0, at)), rows(lines.slice(at))];
  return { head, tail, hidden: Number(hidden.replaceAll(',', '')), total: Number(total.replaceAll(',', '')), size };
}

const unescaped = (text) =>
  text
    .replace(/\\u\{([0-9a-f]+)\}/g, (_, code) => String.fromCodePoint(Number.parseInt(code, 16)))
    .replaceAll('\u2424', '\n');

async function shownWhole(fixture, kind, count) {
  fixture.toolLoop('ask', 'builtin:echo', undefined, { policy: { approval: 'ask' } });
  const json = JSON.stringify({ x: kinds[kind](count) });
  fixture.file('p/in.json', json);
  const run = await fixture.cli(['run', 'ask', '--session', 'q', '--input', '@in.json']);
  expect(run.code === 2, 'a turn that waits', run);
  const { stdout } = await fixture.cli(['approvals', '--session', 'q']);
  const { head, tail, hidden, total, size } = cardOf(stdout);
  const [first, last] = [unescaped(head), unescaped(tail)];
  expect(json.startsWith(first) && json.endsWith(last), 'the beginning and the end of the arguments', { first, last });
  expect(points(first) + hidden + points(last) === points(json), 'an exact amount', {
    shown: points(first) + points(last),
    hidden,
    total,
    points: points(json),
  });
  expect(hidden === 0 || total === points(json), 'the exact total', { total, points: points(json) });
  expect(size === Buffer.byteLength(json), 'the exact bytes', { size, bytes: Buffer.byteLength(json) });
}

export function cases() {
  const all = [];
  for (const kind of Object.keys(kinds)) {
    for (const count of [200, 1990, 2003, 30_000])
      all.push({ id: `output.hidden.${kind}.${count}`, run: (fixture) => shownWhole(fixture, kind, count) });
  }
  return all;
}
