/**
 * Reads the texts that references name, within the limits of a context. All of them are read before any is used, so a
 * model gets either the whole context or nothing.
 */
import { hash } from 'node:crypto';
import { contextError } from '../../base/context-error.js';
import type { ContextItem } from '../../views/loaded-context.js';
import type { DefinitionOrigin } from '../origin.js';
import { type ContextFile, type ContextSources, MAX_CONTEXT_ITEM_BYTES } from './context-source.js';
import { MAX_CONTEXT_REFERENCES, parseReference } from './reference.js';

/** The maximum size of all texts of one context, in bytes of UTF-8. */
export const MAX_CONTEXT_BYTES = 256 * 1024;

/** A text of context and what identifies it. */
export interface ContextText extends ContextItem {
  readonly text: string;
}

/**
 * Reads the texts of references, in their order. Throws CONTEXT_REFUSED if one cannot be read, is too large, or is the
 * same file as another one.
 */
export async function readContext(
  references: readonly string[],
  origin: DefinitionOrigin,
  sources: ContextSources,
): Promise<readonly ContextText[]> {
  const texts: ContextText[] = [];
  const namesByIdentity = new Map<string, string>();
  let total = 0;
  if (references.length > MAX_CONTEXT_REFERENCES)
    throw contextError(references[MAX_CONTEXT_REFERENCES] ?? '', `more than ${MAX_CONTEXT_REFERENCES} references`);
  for (const name of references) {
    const { text, identity } = await readReference(name, origin, sources);
    const other = namesByIdentity.get(identity);
    // guard: one-context-file-under-two-names-refused
    if (other !== undefined) throw contextError(name, `it is the same file as ${JSON.stringify(other)}`);
    namesByIdentity.set(identity, name);
    const item = contextTextOf(name, text);
    // guard: context-item-size-bounded
    if (item.bytes > MAX_CONTEXT_ITEM_BYTES) throw contextError(name, tooLarge(item.bytes, MAX_CONTEXT_ITEM_BYTES));
    total += item.bytes;
    // guard: context-total-size-bounded
    if (total > MAX_CONTEXT_BYTES)
      throw contextError(name, `with it, the context has ${total} bytes; the maximum is ${MAX_CONTEXT_BYTES}`);
    texts.push(item);
  }
  return texts;
}

async function readReference(name: string, origin: DefinitionOrigin, sources: ContextSources): Promise<ContextFile> {
  const reference = parseReference(name);
  if (reference.kind === 'invalid') throw contextError(name, `it ${reference.reason}`);
  if (reference.kind === 'receipt') return readReceipt(name, reference.turn, sources);
  const { files } = sources;
  if (files === undefined)
    throw contextError(
      name,
      'no directory of context files is set; pass the option context to createRondo, or contextFiles to a host',
    );
  return files.read(reference, origin, MAX_CONTEXT_ITEM_BYTES);
}

async function readReceipt(name: string, turnId: string, { summarizeReceipts }: ContextSources): Promise<ContextFile> {
  if (summarizeReceipts === undefined)
    throw contextError(name, 'this host has no receipts; pass receiptKeys or summarizeReceipts to it');
  const text = await summarizeReceipts(turnId);
  if (text === undefined) throw contextError(name, 'the turn has no receipts');
  return { text, identity: `receipt ${turnId}` };
}

function contextTextOf(name: string, text: string): ContextText {
  // A lone surrogate has no UTF-8 form: the stored text would differ from the digest.
  if (/\p{Surrogate}/u.test(text)) throw contextError(name, 'it is not UTF-8 text');
  return { name, text, sha256: hash('sha256', text, 'hex'), bytes: Buffer.byteLength(text) };
}

function tooLarge(bytes: number, maximum: number): string {
  return `it has ${bytes} bytes; the maximum is ${maximum}`;
}
