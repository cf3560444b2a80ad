/**
 * The error for files that cannot be read, parsed or imported, and helpers to report it. Callers convert it to
 * CONFIG_INVALID or to the description of a bad file.
 */

/** A position in a text. Lines and columns are one-based; columns count UTF-16 code units. */
export interface TextPosition {
  readonly line: number;
  readonly column: number;
}

/** Thrown if a file cannot be read or imported, or if its text is not a valid document. */
export class DocumentReadError extends Error {
  override readonly name = 'DocumentReadError';
  /** The position of a syntax error; undefined for other errors. */
  readonly position: TextPosition | undefined;
  /** True if the file does not exist. */
  readonly isMissing: boolean;

  constructor(reason: string, position?: TextPosition, isMissing = false) {
    super(reason);
    this.position = position;
    this.isMissing = isMissing;
  }
}

const MAX_REASON_CHARS = 300;

/**
 * Returns the message of a thrown Error, or a fixed text for any other value. A long message is truncated, and lone
 * surrogates are replaced.
 */
export function describeError(thrown: unknown): string {
  const reason = thrown instanceof Error ? thrown.message : 'a value that is not an Error was thrown';
  const short = reason.length > MAX_REASON_CHARS ? `${reason.slice(0, MAX_REASON_CHARS)}…` : reason;
  return short.replace(/\p{Surrogate}/gu, '\ufffd');
}

/** Returns the unescaped segments of a JSON Pointer. */
export function parseJsonPointer(pointer: string): string[] {
  const segments = pointer.split('/').slice(1);
  return segments.map((segment) => segment.replaceAll('~1', '/').replaceAll('~0', '~'));
}
