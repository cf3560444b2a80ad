/**
 * Converts HTML to plain text, approximately: skips elements without readable text, puts blocks on separate lines, and
 * resolves numeric and common named character references. It makes a single pass, so that no page can take long. The
 * result must not be used as HTML.
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

/** Returns the text of an HTML page. */
export function htmlToText(html: string): string {
  // ASCII letters only: lowercasing others may change their length and shift offsets.
  const lowercase = html.replace(/[A-Z]+/g, (letters) => letters.toLowerCase());
  const parts: string[] = [];
  let offset = 0;
  while (offset < html.length) {
    const open = html.indexOf('<', offset);
    if (open === -1) break;
    parts.push(html.slice(offset, open));
    const { next, text } = replaceTagAt(html, lowercase, open);
    parts.push(text);
    offset = next;
  }
  if (offset < html.length) parts.push(html.slice(offset));
  return collapseWhitespace(resolveReferences(parts.join('')));
}

interface TagReplacement {
  /** The offset after the tag. */
  readonly next: number;
  /** The text that replaces the tag. */
  readonly text: string;
}

function replaceTagAt(html: string, lowercase: string, open: number): TagReplacement {
  if (html.startsWith('<!--', open)) return { next: indexAfter(html, '-->', open + 4), text: '' };
  const name = /^<\/?([a-z][a-z0-9-]*)/.exec(lowercase.slice(open, open + MAX_TAG_NAME_CHARS))?.[1];
  if (name === undefined && !/[!?/]/.test(html.charAt(open + 1))) return { next: open + 1, text: '<' };
  const end = indexAfter(html, '>', open + 1);
  if (name === undefined) return { next: end, text: '' };
  const isClosing = html.charAt(open + 1) === '/';
  if (SKIPPED_TAGS.has(name) && !isClosing && html.charAt(end - 2) !== '/') {
    const close = lowercase.indexOf(`</${name}`, end);
    return { next: close === -1 ? html.length : indexAfter(html, '>', close), text: '\n' };
  }
  return { next: end, text: INLINE_TAGS.has(name) ? '' : name === 'li' && !isClosing ? '\n- ' : '\n' };
}

function indexAfter(text: string, search: string, from: number): number {
  const index = text.indexOf(search, from);
  return index === -1 ? text.length : index + search.length;
}

function resolveReferences(text: string): string {
  return text.replace(/&(?:#(\d{1,7})|#[xX]([0-9a-fA-F]{1,6})|([a-z]{2,6}));/g, (reference, decimal, hex, name) => {
    if (name !== undefined)
      return Object.hasOwn(characterReferences, name) ? (characterReferences[name] as string) : reference;
    const codePoint = Number.parseInt(decimal ?? hex, decimal === undefined ? 16 : 10);
    const isCharacter = codePoint > 0 && codePoint <= 0x10ffff && (codePoint < 0xd800 || codePoint > 0xdfff);
    return isCharacter ? String.fromCodePoint(codePoint) : '\ufffd';
  });
}

/** Leaves one space between words and at most one empty line between blocks. */
function collapseWhitespace(text: string): string {
  const lines = text.split(/[\r\n]/).map((line) => line.replace(/\s+/g, ' ').trim());
  return lines
    .filter((line, i) => line !== '' || (i > 0 && lines[i - 1] !== ''))
    .join('\n')
    .trim();
}
