/**
 * HTML as plain text, roughly: what is not read is left out, blocks become lines, and character references are resolved.
 * One pass from front to back, so that a page made for it cannot take long. The result is for reading, never for showing as HTML.
 */
const SKIPPED_TAGS = new Set(['script', 'style', 'noscript', 'template', 'svg', 'iframe', 'head']);
const INLINE_TAGS = new Set(
  'a abbr b bdi bdo big cite code del dfn em font i ins kbd label mark q s samp small span strong sub sup time tt u var wbr'.split(
    ' ',
  ),
);
const characterReferences: { readonly [name: string]: string } = {
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
const MAX_TAG_NAME_CHARS = 64;

export function htmlToText(html: string): string {
  // Only ASCII letters, as others may change their length.
  const lower = html.replace(/[A-Z]+/g, (letters) => letters.toLowerCase());
  const parts: string[] = [];
  let at = 0;
  while (at < html.length) {
    const open = html.indexOf('<', at);
    if (open === -1) break;
    parts.push(html.slice(at, open));
    const { next, text } = replaceTagAt(html, lower, open);
    parts.push(text);
    at = next;
  }
  if (at < html.length) parts.push(html.slice(at));
  return collapseWhitespace(resolveReferences(parts.join('')));
}

interface TagReplacement {
  /** Where the text goes on. */
  readonly next: number;
  /** What stands for the tag. */
  readonly text: string;
}

function replaceTagAt(html: string, lower: string, open: number): TagReplacement {
  if (html.startsWith('<!--', open)) return { next: indexAfter(html, '-->', open + 4), text: '' };
  const name = /^<\/?([a-z][a-z0-9-]*)/.exec(lower.slice(open, open + MAX_TAG_NAME_CHARS))?.[1];
  if (name === undefined && !/[!?/]/.test(html.charAt(open + 1))) return { next: open + 1, text: '<' };
  const end = indexAfter(html, '>', open + 1);
  if (name === undefined) return { next: end, text: '' };
  const closing = html.charAt(open + 1) === '/';
  if (SKIPPED_TAGS.has(name) && !closing && html.charAt(end - 2) !== '/') {
    const close = lower.indexOf(`</${name}`, end);
    return { next: close === -1 ? html.length : indexAfter(html, '>', close), text: '\n' };
  }
  return { next: end, text: INLINE_TAGS.has(name) ? '' : name === 'li' && !closing ? '\n- ' : '\n' };
}

function indexAfter(text: string, mark: string, from: number): number {
  const at = text.indexOf(mark, from);
  return at === -1 ? text.length : at + mark.length;
}

function resolveReferences(text: string): string {
  return text.replace(/&(?:#(\d{1,7})|#[xX]([0-9a-fA-F]{1,6})|([a-z]{2,6}));/g, (whole, decimal, hex, name) => {
    if (name !== undefined)
      return Object.hasOwn(characterReferences, name) ? (characterReferences[name] as string) : whole;
    const point = Number.parseInt(decimal ?? hex, decimal === undefined ? 16 : 10);
    const known = point > 0 && point <= 0x10ffff && (point < 0xd800 || point > 0xdfff);
    return known ? String.fromCodePoint(point) : '\ufffd';
  });
}

/** One space between words, one empty line between blocks. */
function collapseWhitespace(text: string): string {
  const lines = text.split(/[\r\n]/).map((line) => line.replace(/\s+/g, ' ').trim());
  const kept = lines.filter((line, i) => line !== '' || (i > 0 && lines[i - 1] !== ''));
  return kept.join('\n').trim();
}
