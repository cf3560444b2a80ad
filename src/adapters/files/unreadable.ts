/** A text that cannot be read as a document: why, and where. What that means is for the reader of the file to say. */

/** Lines and columns count from one; columns count UTF-16 units. */
export interface Place {
  readonly line: number;
  readonly column: number;
}

export class Unreadable extends Error {
  override readonly name = 'Unreadable';
  readonly place: Place | undefined;
  /** Whether there is no file at all. */
  readonly missing: boolean;

  constructor(reason: string, place?: Place, missing = false) {
    super(reason);
    this.place = place;
    this.missing = missing;
  }
}

const LONGEST = 300;

/** What was thrown, as a reason of bounded length. */
export function reasonOf(thrown: unknown): string {
  const reason = thrown instanceof Error ? thrown.message : 'something was thrown that is not an error';
  const short = reason.length > LONGEST ? `${reason.slice(0, LONGEST)}…` : reason;
  return short.replace(/\p{Surrogate}/gu, '\ufffd');
}

/** The parts of a JSON pointer. */
export function segments(pointer: string): string[] {
  const parts = pointer.split('/').slice(1);
  return parts.map((part) => part.replaceAll('~1', '/').replaceAll('~0', '~'));
}
