/** The ports through which loops read their context: files, and summaries of receipts. */
import type { DefinitionOrigin } from '../origin.js';
import type { FileReference } from './reference.js';

/** The maximum size of one text of context, in bytes of UTF-8. */
export const MAX_CONTEXT_ITEM_BYTES = 64 * 1024;

/** A file that was read as context. */
export interface ContextFile {
  readonly text: string;
  /** Identifies the file itself, so that two names of one file are noticed. */
  readonly identity: string;
}

/** Reads the files that references name. */
export interface ContextFiles {
  /**
   * Reads a regular UTF-8 file of at most `maxBytes` bytes, below the directory of the definition or, for a loop in code,
   * below a directory of the implementation. Throws CONTEXT_REFUSED, which says what is wrong.
   */
  read(reference: FileReference, origin: DefinitionOrigin, maxBytes: number): Promise<ContextFile>;
}

/** Returns a summary of the receipts of a turn; undefined if it has none. */
export type SummarizeReceipts = (turnId: string) => Promise<string | undefined>;

/** What a host supplies for reading context. */
export interface ContextSources {
  readonly files: ContextFiles | undefined;
  readonly summarizeReceipts: SummarizeReceipts | undefined;
}
