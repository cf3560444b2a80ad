/**
 * HTML as plain text, roughly: what is not read is left out, blocks become lines, and character references are resolved.
 * One pass from front to back, so that a page made for it cannot take long. The result is for reading, never for showing as HTML.
 */
const UNREAD = new Set(['script', 'style', 'noscript', 'template', 'svg', 'iframe', 'head']);
const INLINE = new Set(
  'a abbr b bdi bdo big cite code del dfn em font i ins kbd label mark q s samp small span strong sub sup time tt u var wbr'.split(
    ' ',
  ),
);
const references: { readonly [name: string]: string } = {
  amp: '&',
  lt: '<',
  gt: '>',
  quot: '"',
  apos: "'",
  nbsp: ' ',
  ndash: '–',
  mdash: '—',
  hellip: '…',
  copy: '©',
};
const LONGEST_TAG = 64;

export function plainText(html: string): string {
  // Only ASCII letters, as others may change their length.
  const lower = html.replace(/[A-Z]+/g, (letters) => letters.toLowerCase());
  const parts: string[] = [];
  let at = 0;
  while (at < html.length) {
    const open = html.indexOf('<', at);
    if (open === -1) break;
    parts.push(html.slice(at, open));
    const { next, text } = tagAt(html, lower, open);
    parts.push(text);
    at = next;
  }
  if (at < html.length) parts.push(html.slice(at));
  return tidy(resolved(parts.join('')));
}

interface Tag {
  /** Where the text goes on. */
  readonly next: number;
  /** What stands for the tag. */
  readonly text: string;
}

function tagAt(html: string, lower: string, open: number): Tag {
  if (html.startsWith('<!--', open)) return { next: after(html, '-->', open + 4), text: '' };
  const name = /^<\/?([a-z][a-z0-9-]*)/.exec(lower.slice(open, open + LONGEST_TAG))?.[1];
  if (name === undefined && !/[!?/]/.test(html.charAt(open + 1))) return { next: open + 1, text: '<' };
  const end = after(html, '>', open + 1);
  if (name === undefined) return { next: end, text: '' };
  const closing = html.charAt(open + 1) === '/';
  if (UNREAD.has(name) && !closing && html.charAt(end - 2) !== '/') {
    const close = lower.indexOf(`</${name}`, end);
    return { next: close === -1 ? html.length : after(html, '>', close), text: '\n' };
  }
  return { next: end, text: INLINE.has(name) ? '' : name === 'li' && !closing ? '\n- ' : '\n' };
}

function after(text: string, mark: string, from: number): number {
  const at = text.indexOf(mark, from);
  return at === -1 ? text.length : at + mark.length;
}

function resolved(text: string): string {
  return text.replace(/&(?:#(\d{1,7})|#[xX]([0-9a-fA-F]{1,6})|([a-z]{2,6}));/g, (whole, decimal, hex, name) => {
    if (name !== undefined) return Object.hasOwn(references, name) ? (references[name] as string) : whole;
    const point = Number.parseInt(decimal ?? hex, decimal === undefined ? 16 : 10);
    const known = point > 0 && point <= 0x10ffff && (point < 0xd800 || point > 0xdfff);
    return known ? String.fromCodePoint(point) : '\ufffd';
  });
}

/** One space between words, one empty line between blocks. */
function tidy(text: string): string {
  const lines = text.split(/[\r\n]/).map((line) => line.replace(/\s+/g, ' ').trim());
  const kept = lines.filter((line, i) => line !== '' || (i > 0 && lines[i - 1] !== ''));
  return kept.join('\n').trim();
}
