/** JSON from the command line, a file or stdin: bounded, in UTF-8, and told with its line when it is not JSON. */
import { createReadStream } from 'node:fs';
import { resolve } from 'node:path';
import { parseJson } from '../compose.js';
import { UsageError } from '../settings.js';
import type { Terminal } from './terminal.js';

/** The most that an input may hold. */
const MAX_INPUT_BYTES = 64 * 1024 * 1024;

/** The value that an option such as `--input` stands for: JSON itself, `@file` or `-` for stdin. */
export async function readJsonInput(option: string, given: string, { streams }: Terminal): Promise<unknown> {
  const { stdin, cwd } = streams;
  if (given === '-') return parseInput(`${option} -`, await readText(`${option} -`, stdin));
  if (!given.startsWith('@')) return parseInput(option, given);
  const source = `${option} ${given}`;
  return parseInput(source, await readText(source, createReadStream(resolve(cwd, given.slice(1)))));
}

async function readText(source: string, stream: AsyncIterable<Buffer>): Promise<string> {
  const pieces: Buffer[] = [];
  let length = 0;
  try {
    for await (const piece of stream) {
      length += piece.length;
      if (length > MAX_INPUT_BYTES)
        throw new UsageError(`${source}: it has more than ${MAX_INPUT_BYTES} bytes, which is the most.`);
      pieces.push(piece);
    }
    return new TextDecoder('utf-8', { fatal: true }).decode(Buffer.concat(pieces));
  } catch (thrown) {
    if (thrown instanceof UsageError) throw thrown;
    throw new UsageError(`${source}: ${readFailureReason(thrown as NodeJS.ErrnoException)}.`);
  }
}

function readFailureReason({ code, message }: NodeJS.ErrnoException): string {
  if (code === 'ENOENT') return 'there is no such file';
  if (code === 'EISDIR') return 'it is a directory, not a file';
  if (code === 'EACCES') return 'it may not be read (permission denied)';
  return code === 'ERR_ENCODING_INVALID_ENCODED_DATA' ? 'it is not UTF-8 text' : message;
}

async function parseInput(source: string, text: string): Promise<unknown> {
  try {
    return await parseJson(text);
  } catch (thrown) {
    const { message, place } = thrown as { message: string; place?: { line: number; column: number } };
    const where = place === undefined ? '' : ` (line ${place.line}, column ${place.column})`;
    throw new UsageError(`${source} cannot be read as JSON: ${message}${where}.`);
  }
}
