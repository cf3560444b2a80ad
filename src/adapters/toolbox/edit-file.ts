/**
 * The tool `edit_file`: replaces a text in a file. Unless `all` is true, the old text must occur exactly once, both
 * when approval is requested and when the edit is made, so that an approval is never applied to another occurrence.
 * Only UTF-8 files can be edited.
 */
import { defineActionTool, type ToolboxTool } from './define-tool.js';
import { applyChange, type ContentTransform, MAX_WRITE_BYTES, previewChange } from './file-change.js';
import { defineInput, type InferInput } from './input-schema.js';
import { findOccurrences } from './occurrences.js';
import type { Roots } from './roots.js';
import { decodeUtf8, splitLines, truncate } from './text.js';
import { quotePath, toolError, toPathError } from './tool-error.js';

const inputSchema = defineInput({
  path: { type: 'string', min: 1, description: 'The file.' },
  old: {
    type: 'string',
    min: 1,
    max: MAX_WRITE_BYTES,
    description: 'The text to replace, exactly as in the file, without line numbers, and long enough to be unique.',
  },
  new: { type: 'string', max: MAX_WRITE_BYTES, description: 'The replacement text.' },
  all: { type: 'boolean', optional: true, description: 'Replaces every occurrence.' },
});

type EditFileInput = InferInput<typeof inputSchema>;

/** Creates the tool `edit_file`. */
export function editFileTool(roots: Roots): ToolboxTool<EditFileInput> {
  return defineActionTool({
    name: 'edit_file',
    description: 'Replaces a text in a file with another. The old text must occur exactly once, unless all is true.',
    inputSchema,
    safety: 'once',
    approvalMessage: async (input) => {
      const { path, diff } = await previewChange(roots, input.path, editTransform(input));
      return `Edit ${path}:\n${diff}`;
    },
    approvalTarget: ({ path }) => roots.approvalTargetOf(path),
    execute: (input, { approvedTarget, confinement }) =>
      applyChange(roots.confinedTo(confinement), input.path, editTransform(input), approvedTarget),
  });
}

function editTransform(input: EditFileInput): ContentTransform {
  return (current) => {
    const { path, all = false } = input;
    if (current === undefined) throw toPathError(path, { code: 'ENOENT' });
    const text = decodeUtf8(current);
    if (text === undefined) throw toolError(`${quotePath(path)} is not UTF-8 text; an edit would damage it.`);
    if (input.old === input.new)
      throw toolError(`old and new are the same; nothing would change in ${quotePath(path)}.`);
    const { oldText, newText, offsets } = findOldText(text, input);
    if (offsets.length === 0)
      throw toolError(`old does not occur in ${quotePath(path)}. ${similarLinesHint(text, oldText)}`);
    if (offsets.length > 1 && !all) throw toolError(ambiguousMatchMessage(path, text, offsets));
    if (text.length + offsets.length * newText.length <= MAX_WRITE_BYTES)
      return replaceMatches(text, oldText, newText, offsets);
    throw toolError(
      `${quotePath(path)} would become longer than ${MAX_WRITE_BYTES} characters; use run_command to change it.`,
    );
  };
}

interface TextMatches {
  readonly oldText: string;
  readonly newText: string;
  readonly offsets: readonly number[];
}

/** Finds the old text. view_file does not show Windows line endings, so the text may be given without them. */
function findOldText(text: string, input: EditFileInput): TextMatches {
  const exact = { oldText: input.old, newText: input.new, offsets: findOccurrences(text, input.old) };
  if (exact.offsets.length > 0 || !text.includes('\r\n') || input.old.includes('\r')) return exact;
  const toWindows = (part: string): string => part.replace(/\r?\n/g, '\r\n');
  const oldText = toWindows(input.old);
  return { oldText, newText: toWindows(input.new), offsets: findOccurrences(text, oldText) };
}

function replaceMatches(text: string, oldText: string, newText: string, offsets: readonly number[]): string {
  const parts: string[] = [];
  let copiedTo = 0;
  for (const offset of offsets) {
    // A match that overlaps the previous one was replaced with it.
    if (offset < copiedTo) continue;
    parts.push(text.slice(copiedTo, offset), newText);
    copiedTo = offset + oldText.length;
  }
  parts.push(text.slice(copiedTo));
  return parts.join('');
}

function ambiguousMatchMessage(path: string, text: string, offsets: readonly number[]): string {
  const lineNumbers = offsets.slice(0, 8).map((offset) => text.slice(0, offset).split('\n').length);
  const more = offsets.length > lineNumbers.length ? ', …' : '';
  return (
    `old occurs in ${quotePath(path)} ${offsets.length} times (lines ${lineNumbers.join(', ')}${more}). ` +
    'Include more of the surrounding lines, or set all to true.'
  );
}

/**
 * Returns a hint with the lines around one that equals a line of the old text except for whitespace at its ends, or a
 * hint that there is none.
 */
function similarLinesHint(text: string, oldText: string): string {
  const lines = splitLines(text);
  const trimmed = lines.map((line) => line.trim());
  const trimmedOldLines = splitLines(oldText).map((line) => line.trim());
  for (const line of trimmedOldLines.filter(({ length }) => length > 2).slice(0, 20)) {
    const index = trimmed.indexOf(line);
    if (index === -1) continue;
    const first = Math.max(0, index - 2);
    const excerpt = lines.slice(first, index + 5).map((near, i) => `${first + i + 1}\t${truncate(near, 200)}`);
    return `It must match exactly, including whitespace. The nearest lines are:\n${excerpt.join('\n')}`;
  }
  return 'No line is similar to it; view the file again.';
}
