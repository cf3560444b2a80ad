/** `view_file`: lines of a text file, with their numbers. */
import { defineReadTool, type ToolboxTool, type ToolOutput } from './define-tool.js';
import { defineInput, type InferInput } from './input-schema.js';
import { digestOf, readContents } from './read-contents.js';
import type { OpenPath, Roots } from './roots.js';
import { isBinary, splitLines, truncate } from './text.js';
import { quotePath, toolError } from './tool-error.js';

/** What is read of a file. */
const MAX_VIEWED_BYTES = 16 * 1024 * 1024;
const DEFAULT_LIMIT = 1000;
const MAX_LIMIT = 5000;
const MAX_LINE_CHARS = 1000;
/** Characters that are shown at once. */
const MAX_OUTPUT_CHARS = 60_000;

const inputSchema = defineInput({
  path: { type: 'string', min: 1, description: 'The file.' },
  offset: { type: 'integer', optional: true, min: 1, description: 'The first line to show. Default: 1.' },
  limit: {
    type: 'integer',
    optional: true,
    min: 1,
    max: MAX_LIMIT,
    description: `How many lines. Default: ${DEFAULT_LIMIT}.`,
  },
});

export function viewFileTool(roots: Roots): ToolboxTool<InferInput<typeof inputSchema>> {
  return defineReadTool({
    name: 'view_file',
    description:
      'Shows lines of a text file. Each begins with its number and a tab, which are not part of the file. ' +
      'digest tells this content from any other; write_file takes it as expect.',
    inputSchema,
    execute: ({ path, offset = 1, limit = DEFAULT_LIMIT }) =>
      roots.open(path, 'file', async (opened) => viewLines(roots, path, opened, offset, limit)),
  });
}

async function viewLines(
  roots: Roots,
  path: string,
  opened: OpenPath,
  offset: number,
  limit: number,
): Promise<ToolOutput> {
  const { bytes, isTruncated } = await readContents(opened, MAX_VIEWED_BYTES);
  if (isBinary(bytes)) {
    throw toolError(
      `${quotePath(path)} is not text (${opened.stats.size} bytes); use run_command if you must look into it.`,
    );
  }
  const { lines, from, to } = lineExtentOf(bytes, offset, limit);
  if (offset > lines && offset > 1) {
    throw toolError(`${quotePath(path)} has ${lines} lines, so there is no line ${offset}.`, { lines });
  }
  const shown: string[] = [];
  let size = 0;
  for (const line of splitLines(new TextDecoder().decode(bytes.subarray(from, to)))) {
    const text = `${offset + shown.length}\t${truncate(line, MAX_LINE_CHARS, `… (${line.length - MAX_LINE_CHARS} more characters)`)}`;
    size += text.length + 1;
    if (size > MAX_OUTPUT_CHARS) break;
    shown.push(text);
  }
  const last = offset - 1 + shown.length;
  const answer = { path: roots.displayPath(opened.realPath), text: shown.join('\n'), lines };
  if (isTruncated)
    return { ...answer, note: `Only the first ${MAX_VIEWED_BYTES} bytes of ${opened.stats.size} can be viewed.` };
  const whole = { ...answer, digest: digestOf(bytes) };
  return last < lines ? { ...whole, note: `Lines ${last + 1} to ${lines} follow; use offset.` } : whole;
}

/** How many lines there are, and the bytes of those asked for: the others are never made texts of. */
function lineExtentOf(bytes: Uint8Array, offset: number, limit: number): { lines: number; from: number; to: number } {
  let [ends, from, to] = [0, offset === 1 ? 0 : bytes.length, bytes.length];
  for (let i = 0; i < bytes.length; i++) {
    if (bytes[i] !== 10) continue;
    ends += 1;
    if (ends === offset - 1) from = i + 1;
    if (ends === offset - 1 + limit) to = i + 1;
  }
  const open = bytes.length > 0 && bytes[bytes.length - 1] !== 10;
  return { lines: open ? ends + 1 : ends, from, to };
}
