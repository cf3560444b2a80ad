/** The tool `view_file`: returns lines of a text file with their numbers. */
import { defineReadTool, type ToolboxTool, type ToolOutput } from './define-tool.js';
import { defineInput, type InferInput } from './input-schema.js';
import { digestOf, readContents } from './read-contents.js';
import type { OpenPath, Roots } from './roots.js';
import { isBinary, splitLines, truncate } from './text.js';
import { quotePath, toolError } from './tool-error.js';

/** The maximum number of bytes that are read of a file. */
const MAX_VIEWED_BYTES = 16 * 1024 * 1024;
const DEFAULT_LIMIT = 1000;
const MAX_LIMIT = 5000;
const MAX_LINE_CHARS = 1000;
/** The maximum number of characters that are returned at once. */
const MAX_OUTPUT_CHARS = 60_000;

const inputSchema = defineInput({
  path: { type: 'string', min: 1, description: 'The file.' },
  offset: { type: 'integer', optional: true, min: 1, description: 'The first line to show. Default: 1.' },
  limit: {
    type: 'integer',
    optional: true,
    min: 1,
    max: MAX_LIMIT,
    description: `The maximum number of lines. Default: ${DEFAULT_LIMIT}.`,
  },
});

/** Creates the tool `view_file`. */
export function viewFileTool(roots: Roots): ToolboxTool<InferInput<typeof inputSchema>> {
  return defineReadTool({
    name: 'view_file',
    description:
      'Shows lines of a text file. Each begins with its number and a tab, which are not part of the file. ' +
      'digest identifies this content; write_file accepts it as expect.',
    inputSchema,
    execute: ({ path, offset = 1, limit = DEFAULT_LIMIT }, { confinement }) =>
      roots.confinedTo(confinement).open(path, 'file', async (opened) => viewLines(roots, path, opened, offset, limit)),
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
    throw toolError(`${quotePath(path)} is not text (${opened.stats.size} bytes); use run_command to inspect it.`);
  }
  const { lines, start, end } = lineExtentOf(bytes, offset, limit);
  if (offset > lines && offset > 1) {
    throw toolError(`${quotePath(path)} has ${lines} lines, so there is no line ${offset}.`, { lines });
  }
  const numberedLines: string[] = [];
  let charCount = 0;
  for (const line of splitLines(new TextDecoder().decode(bytes.subarray(start, end)))) {
    const text = `${offset + numberedLines.length}\t${truncate(line, MAX_LINE_CHARS, `… (${line.length - MAX_LINE_CHARS} more characters)`)}`;
    charCount += text.length + 1;
    if (charCount > MAX_OUTPUT_CHARS) break;
    numberedLines.push(text);
  }
  const lastLine = offset - 1 + numberedLines.length;
  const output = { path: roots.displayPath(opened.realPath), text: numberedLines.join('\n'), lines };
  if (isTruncated)
    return { ...output, note: `Only the first ${MAX_VIEWED_BYTES} bytes of ${opened.stats.size} can be viewed.` };
  const withDigest = { ...output, digest: digestOf(bytes) };
  if (lastLine >= lines) return withDigest;
  return { ...withDigest, note: `Lines ${lastLine + 1} to ${lines} follow; use offset.` };
}

/**
 * Returns the number of all lines, and the byte range of the requested ones: `limit` lines from the one-based line
 * `offset` on.
 */
function lineExtentOf(bytes: Uint8Array, offset: number, limit: number): { lines: number; start: number; end: number } {
  let [newlines, start, end] = [0, offset === 1 ? 0 : bytes.length, bytes.length];
  for (let i = 0; i < bytes.length; i++) {
    if (bytes[i] !== 10) continue;
    newlines += 1;
    if (newlines === offset - 1) start = i + 1;
    if (newlines === offset - 1 + limit) end = i + 1;
  }
  const hasUnterminatedLine = bytes.length > 0 && bytes[bytes.length - 1] !== 10;
  return { lines: hasUnterminatedLine ? newlines + 1 : newlines, start, end };
}
