/** Errors of HTTP requests, sent as RFC 9457 problem documents. */

/** An error that is sent to the client, with its HTTP status. */
export class HttpProblem extends Error {
  override readonly name = 'Problem';
  readonly status: number;
  readonly code: string;
  /** Response headers that the status requires, such as `allow` for 405. */
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
  [401, 'Unauthorized'],
  [403, 'Forbidden'],
  [404, 'Not found'],
  [405, 'Method not allowed'],
  [409, 'Conflict'],
  [413, 'Content too large'],
  [415, 'Unsupported media type'],
  [422, 'Unprocessable content'],
  [503, 'Service unavailable'],
]);

/**
 * Returns the response for a thrown value. Errors other than `HttpProblem` are internal: their text is not disclosed.
 */
export function problemResponse(thrown: unknown): Response {
  const problem =
    thrown instanceof HttpProblem
      ? thrown
      : new HttpProblem(500, 'INTERNAL', 'The server failed to handle the request.');
  const { status, code, message: detail } = problem;
  const title = STATUS_TITLES.get(status) ?? 'Internal server error';
  const headers = { ...problem.headers, 'content-type': 'application/problem+json', 'cache-control': 'no-store' };
  return new Response(JSON.stringify({ title, status, detail, code }), { status, headers });
}
