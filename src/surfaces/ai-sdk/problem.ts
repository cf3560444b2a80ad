/** What is wrong with a request, as an RFC 9457 problem document. */

/** A request that is not served; thrown by whoever finds out. */
export class HttpProblem extends Error {
  override readonly name = 'Problem';
  readonly status: number;
  readonly code: string;
  /** Headers that the status asks for. */
  readonly headers: Readonly<Record<string, string>>;

  constructor(status: number, code: string, detail: string, headers: Readonly<Record<string, string>> = {}) {
    super(detail);
    this.status = status;
    this.code = code;
    this.headers = headers;
  }
}

const STATUS_TITLES: ReadonlyMap<number, string> = new Map([
  [400, 'Bad request'],
  [403, 'Forbidden'],
  [404, 'Not found'],
  [405, 'Method not allowed'],
  [409, 'Conflict'],
  [413, 'Content too large'],
  [415, 'Unsupported media type'],
  [422, 'Unprocessable content'],
]);

/** The document of a problem. Of anything else that was thrown nothing is told: it is the server's own business. */
export function problemResponse(thrown: unknown): Response {
  const known =
    thrown instanceof HttpProblem ? thrown : new HttpProblem(500, 'INTERNAL', 'The server could not do this.');
  const { status, code, message: detail } = known;
  const title = STATUS_TITLES.get(status) ?? 'Internal server error';
  const headers = { ...known.headers, 'content-type': 'application/problem+json', 'cache-control': 'no-store' };
  return new Response(JSON.stringify({ title, status, detail, code }), { status, headers });
}
