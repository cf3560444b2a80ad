/**
 * The document in front of a body. That of an append comes with every step of another process, so it is recognized by a pattern, in half
 * the time; any other is parsed.
 */

const WHOLE = '(0|[1-9][0-9]{0,14})';
const append = new RegExp(
  `^\\{"i":${WHOLE},"op":"append","session":"([^"\\\\\\u0000-\\u001f]*)","fence":${WHOLE},"first":${WHOLE},"count":${WHOLE}\\}$`,
);

/** The document that a text is, with its body; throws a SyntaxError if the text is none. */
export function withBody(header: string, body: string): unknown {
  const found = append.exec(header);
  if (found === null) return { ...JSON.parse(header), body };
  const [, i, session, fence, first, count] = found;
  return {
    i: Number(i),
    op: 'append',
    session,
    fence: Number(fence),
    first: Number(first),
    count: Number(count),
    body,
  };
}
