/**
 * The document in front of a body. That of an append comes with every step of another process, so it is recognized by a pattern, in half
 * the time; any other is parsed.
 */

const INTEGER_PATTERN = '(0|[1-9][0-9]{0,14})';
const APPEND_HEADER = new RegExp(
  `^\\{"i":${INTEGER_PATTERN},"op":"append","session":"([^"\\\\\\u0000-\\u001f]*)","fence":${INTEGER_PATTERN},"firstSeq":${INTEGER_PATTERN},"count":${INTEGER_PATTERN}\\}$`,
);

/** The document that a text is, with its body; throws a SyntaxError if the text is none. */
export function parseMessageWithBody(header: string, body: string): unknown {
  const found = APPEND_HEADER.exec(header);
  if (found === null) return { ...JSON.parse(header), body };
  const [, i, session, fence, firstSeq, count] = found;
  return {
    i: Number(i),
    op: 'append',
    session,
    fence: Number(fence),
    firstSeq: Number(firstSeq),
    count: Number(count),
    body,
  };
}
