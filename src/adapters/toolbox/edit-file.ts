/**
 * `edit_file`: a text in a file for another. The old text must stand there exactly once, when a person is asked and again
 * when it is done, so an approval is never used on another place. Only UTF-8 is edited; all other bytes stay as they are.
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
    description: 'The text to replace, exactly as in the file, without line numbers, and long enough to be there once.',
  },
  new: { type: 'string', max: MAX_WRITE_BYTES, description: 'What stands there instead.' },
  all: { type: 'boolean', optional: true, description: 'Replaces every occurrence, however many.' },
});

type EditFileInput = InferInput<typeof inputSchema>;

export function editFileTool(roots: Roots): ToolboxTool<EditFileInput> {
  return defineActionTool({
    name: 'edit_file',
    description:
      'Replaces a text in a file with another. The old text must stand there exactly once, unless all is true.',
    inputSchema,
    safety: 'once',
    approvalMessage: async (input) => {
      const { path, diff } = await previewChange(roots, input.path, editTransform(input));
      return `Edit ${path}:\n${diff}`;
    },
    approvalTarget: ({ path }) => roots.approvalTargetOf(path),
    execute: (input, { approvedTarget }) => applyChange(roots, input.path, editTransform(input), approvedTarget),
  });
}

function editTransform(input: EditFileInput): ContentTransform {
  return (present) => {
    const { path, all = false } = input;
    if (present === undefined) throw toPathError(path, { code: 'ENOENT' });
    const text = decodeUtf8(present);
    if (text === undefined) throw toolError(`${quotePath(path)} is not UTF-8 text; an edit would damage it.`);
    if (input.old === input.new)
      throw toolError(`old and new are the same; nothing would change in ${quotePath(path)}.`);
    const { old, next, places } = findOldText(text, input);
    if (places.length === 0)
      throw toolError(`old does not stand in ${quotePath(path)}. ${similarLinesHint(text, old)}`);
    if (places.length > 1 && !all) throw toolError(ambiguousMatchMessage(path, text, places));
    if (text.length + places.length * next.length <= MAX_WRITE_BYTES) return replaceMatches(text, old, next, places);
    throw toolError(
      `${quotePath(path)} would become longer than ${MAX_WRITE_BYTES} characters; use run_command to change it.`,
    );
  };
}

interface TextMatches {
  readonly old: string;
  readonly next: string;
  readonly places: readonly number[];
}

/** Who views a file with Windows line ends does not see them, so a text is found without them too. */
function findOldText(text: string, input: EditFileInput): TextMatches {
  const exact = { old: input.old, next: input.new, places: findOccurrences(text, input.old) };
  if (exact.places.length > 0 || !text.includes('\r\n') || input.old.includes('\r')) return exact;
  const windows = (part: string): string => part.replace(/\r?\n/g, '\r\n');
  const old = windows(input.old);
  return { old, next: windows(input.new), places: findOccurrences(text, old) };
}

function replaceMatches(text: string, old: string, next: string, places: readonly number[]): string {
  const parts: string[] = [];
  let from = 0;
  for (const at of places) {
    // Those that overlap the one before are gone with it.
    if (at < from) continue;
    parts.push(text.slice(from, at), next);
    from = at + old.length;
  }
  parts.push(text.slice(from));
  return parts.join('');
}

function ambiguousMatchMessage(path: string, text: string, places: readonly number[]): string {
  const first = places.slice(0, 8).map((at) => text.slice(0, at).split('\n').length);
  const more = places.length > first.length ? ', …' : '';
  return (
    `old stands in ${quotePath(path)} ${places.length} times (lines ${first.join(', ')}${more}). ` +
    'Take more of the lines around the one you mean, or set all to true.'
  );
}

/** The lines that look most like what was looked for: those that differ in white space only. */
function similarLinesHint(text: string, old: string): string {
  const lines = splitLines(text);
  const trimmed = lines.map((line) => line.trim());
  const wanted = splitLines(old).map((line) => line.trim());
  for (const line of wanted.filter(({ length }) => length > 2).slice(0, 20)) {
    const at = trimmed.indexOf(line);
    if (at === -1) continue;
    const from = Math.max(0, at - 2);
    const shown = lines.slice(from, at + 5).map((near, i) => `${from + i + 1}\t${truncate(near, 200)}`);
    return `It must match exactly, white space included. The nearest lines are:\n${shown.join('\n')}`;
  }
  return 'Nothing in it is like it; view the file again.';
}
