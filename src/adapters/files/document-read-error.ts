/** A text that cannot be read as a document: why, and where. What that means is for the reader of the file to say. */

/** Lines and columns count from one; columns count UTF-16 units. */
export interface TextPosition {
  readonly line: number;
  readonly column: number;
}

export class DocumentReadError extends Error {
  override readonly name = 'DocumentReadError';
  readonly place: TextPosition | undefined;
  /** Whether there is no file at all. */
  readonly isMissing: boolean;

  constructor(reason: string, place?: TextPosition, missing = false) {
    super(reason);
    this.place = place;
    this.isMissing = missing;
  }
}

const MAX_REASON_CHARS = 300;

/** What was thrown, as a reason of bounded length. */
export function describeError(thrown: unknown): string {
  const reason = thrown instanceof Error ? thrown.message : 'something was thrown that is not an error';
  const short = reason.length > MAX_REASON_CHARS ? `${reason.slice(0, MAX_REASON_CHARS)}…` : reason;
  return short.replace(/\p{Surrogate}/gu, '\ufffd');
}

/** The parts of a JSON pointer. */
export function parseJsonPointer(pointer: string): string[] {
  const parts = pointer.split('/').slice(1);
  return parts.map((part) => part.replaceAll('~1', '/').replaceAll('~0', '~'));
}
