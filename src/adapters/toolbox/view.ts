/** `view_file`: lines of a text file, with their numbers. */
import { type Answer, type BoxTool, readingTool } from './box.js';
import { type Fitting, inputOf } from './input.js';
import { contentsOf, digestOf } from './read.js';
import { named, refusal } from './refusal.js';
import type { Opened, Roots } from './roots.js';
import { cut, isBinary, linesOf } from './text.js';

/** What is read of a file. */
const BYTES = 16 * 1024 * 1024;
const LIMIT = 1000;
const MOST = 5000;
const LINE = 1000;
/** Characters that are shown at once. */
const SIZE = 60_000;

const inputSchema = inputOf({
  path: { type: 'string', min: 1, description: 'The file.' },
  offset: { type: 'integer', optional: true, min: 1, description: 'The first line to show; 1 unless told.' },
  limit: { type: 'integer', optional: true, min: 1, max: MOST, description: `How many lines; ${LIMIT} unless told.` },
});

export function viewFile(roots: Roots): BoxTool<Fitting<typeof inputSchema>> {
  return readingTool({
    name: 'view_file',
    description:
      'Shows lines of a text file. Each begins with its number and a tab, which are not part of the file. ' +
      'digest tells this content from any other; write_file takes it as expect.',
    inputSchema,
    execute: ({ path, offset = 1, limit = LIMIT }) =>
      roots.open(path, 'file', async (opened) => view(roots, path, opened, offset, limit)),
  });
}

async function view(roots: Roots, path: string, opened: Opened, offset: number, limit: number): Promise<Answer> {
  const { bytes, more } = await contentsOf(opened, BYTES);
  if (isBinary(bytes)) {
    throw refusal(`${named(path)} is not text (${opened.stats.size} bytes); use run_command if you must look into it.`);
  }
  const { lines, from, to } = extentOf(bytes, offset, limit);
  if (offset > lines && offset > 1) {
    throw refusal(`${named(path)} has ${lines} lines, so there is no line ${offset}.`, { lines });
  }
  const shown: string[] = [];
  let size = 0;
  for (const line of linesOf(new TextDecoder().decode(bytes.subarray(from, to)))) {
    const text = `${offset + shown.length}\t${cut(line, LINE, `… (${line.length - LINE} more characters)`)}`;
    size += text.length + 1;
    if (size > SIZE) break;
    shown.push(text);
  }
  const last = offset - 1 + shown.length;
  const answer = { path: roots.shown(opened.real), text: shown.join('\n'), lines };
  if (more) return { ...answer, note: `Only the first ${BYTES} bytes of ${opened.stats.size} can be viewed.` };
  const whole = { ...answer, digest: digestOf(bytes) };
  return last < lines ? { ...whole, note: `Lines ${last + 1} to ${lines} follow; use offset.` } : whole;
}

/** How many lines there are, and the bytes of those asked for: the others are never made texts of. */
function extentOf(bytes: Uint8Array, offset: number, limit: number): { lines: number; from: number; to: number } {
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
