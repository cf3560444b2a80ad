/**
 * References to context: texts of the project that a prompt or an agent gives its model as data. A reference is a path
 * below a directory, `skill:NAME`, or `receipt:TURN`. This file decides what a reference may look like; it never reads
 * the disk.
 */
import { HIDDEN_CHARACTER } from '../../base/hidden-characters.js';

/** The maximum number of references of one prompt or agent. */
export const MAX_CONTEXT_REFERENCES = 12;

/** A reference to a file: a relative path, or the name of a skill of the project. */
export type FileReference =
  | { readonly kind: 'path'; readonly path: string }
  | { readonly kind: 'skill'; readonly name: string };

/** A reference that can be resolved. */
export type ContextReference = FileReference | { readonly kind: 'receipt'; readonly turn: string };

const MAX_REFERENCE_CHARS = 400;
const SKILL_PREFIX = 'skill:';
const RECEIPT_PREFIX = 'receipt:';
const SKILL_NAME = /^[A-Za-z0-9](?:[A-Za-z0-9._-]{0,98}[A-Za-z0-9_-])?$/;
const TURN_ID = /^[^/\s]{1,300}\.[^/\s.]{1,100}$/;
const FORBIDDEN_CHARACTER = new RegExp(`[\\\\"<>|?*]|${HIDDEN_CHARACTER}`, 'u');

/** Parses a reference. Returns the reason, which completes the message "… is refused: it …", if it is not allowed. */
export function parseReference(text: string): ContextReference | { readonly kind: 'invalid'; readonly reason: string } {
  const reason = commonProblem(text);
  if (reason !== undefined) return { kind: 'invalid', reason };
  if (text.startsWith(SKILL_PREFIX)) return parseSkill(text.slice(SKILL_PREFIX.length));
  if (text.startsWith(RECEIPT_PREFIX)) return parseReceipt(text.slice(RECEIPT_PREFIX.length));
  const path = text.startsWith('./') ? text.slice(2) : text;
  const problem = pathProblem(path);
  return problem === undefined ? { kind: 'path', path } : { kind: 'invalid', reason: problem };
}

/** Returns a text that two spellings of one reference share. */
export function referenceKey(reference: ContextReference): string {
  if (reference.kind === 'path') return `path:${reference.path}`;
  return reference.kind === 'skill' ? `skill:${reference.name}` : `receipt:${reference.turn}`;
}

function commonProblem(text: string): string | undefined {
  if (text.trim() === '') return 'is empty';
  if (text.length > MAX_REFERENCE_CHARS) return `is longer than ${MAX_REFERENCE_CHARS} characters`;
  if (FORBIDDEN_CHARACTER.test(text)) return 'has a hidden character or one of \\ " < > | ? *; write / between names';
  return undefined;
}

function parseSkill(name: string): ReturnType<typeof parseReference> {
  if (SKILL_NAME.test(name)) return { kind: 'skill', name };
  return { kind: 'invalid', reason: 'is not skill:NAME with a name of letters, digits, ".", "_" and "-"' };
}

function parseReceipt(turn: string): ReturnType<typeof parseReference> {
  if (TURN_ID.test(turn)) return { kind: 'receipt', turn };
  return { kind: 'invalid', reason: 'is not receipt:TURN with the id of a turn' };
}

/** Returns why a path is not allowed. A path that passes stays below its directory, apart from links on the disk. */
function pathProblem(path: string): string | undefined {
  // guard: context-urls-refused
  if (path.includes(':')) return 'has a scheme or a drive; only skill:, receipt: and relative paths are allowed';
  if (path.startsWith('/')) return 'is absolute; write a path relative to the directory of the definition';
  const segments = path.split('/');
  if (segments.includes('..')) return 'has "..", which could leave the directory of the definition';
  if (segments.some((segment) => segment === '' || segment.trim() !== segment)) return 'has an empty or padded name';
  // guard: hidden-context-files-refused
  if (segments.some((segment) => segment.startsWith('.'))) return 'names a hidden file, such as .env';
  return undefined;
}
