/**
 * Parses the JSON header of a message with a body. Most of these messages are appends that another process sends to the
 * owner, so their header is matched with a regular expression, which takes half the time of JSON.parse.
 */

const INTEGER_PATTERN = '(0|[1-9][0-9]{0,14})';
const APPEND_HEADER = new RegExp(
  `^\\{"i":${INTEGER_PATTERN},"op":"append","session":"([^"\\\\\\u0000-\\u001f]*)","fence":${INTEGER_PATTERN},"firstSeq":${INTEGER_PATTERN},"count":${INTEGER_PATTERN}\\}$`,
);

/**
 * Parses a header and adds its body as the member `body`; `i` is the number of the request. Throws a SyntaxError if the
 * header is not JSON.
 */
export function parseMessageWithBody(header: string, body: string): unknown {
  const match = APPEND_HEADER.exec(header);
  if (match === null) return { ...JSON.parse(header), body };
  const [, i, session, fence, firstSeq, count] = match;
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
