/** Reads JSON from an argument, a file or stdin. Syntax errors name the line and column. */
import { createReadStream } from 'node:fs';
import { resolve } from 'node:path';
import { type DocumentReadError, parseJson } from '../compose.js';
import { UsageError } from '../settings.js';
import type { Terminal } from './terminal.js';

/** The maximum size of a file or of stdin. */
const MAX_INPUT_BYTES = 64 * 1024 * 1024;

/**
 * Returns the value of an option such as `--input`: JSON text, `@file`, or `-` for stdin. Throws a UsageError if it
 * cannot be read.
 */
export async function readJsonInput(option: string, value: string, { streams }: Terminal): Promise<unknown> {
  const { stdin, cwd } = streams;
  if (value === '-') return parseInput(`${option} -`, await readText(`${option} -`, stdin));
  if (!value.startsWith('@')) return parseInput(option, value);
  const source = `${option} ${value}`;
  return parseInput(source, await readText(source, createReadStream(resolve(cwd, value.slice(1)))));
}

async function readText(source: string, stream: AsyncIterable<Buffer>): Promise<string> {
  const chunks: Buffer[] = [];
  let length = 0;
  try {
    for await (const chunk of stream) {
      length += chunk.length;
      if (length > MAX_INPUT_BYTES) throw new UsageError(`${source}: it has more than ${MAX_INPUT_BYTES} bytes.`);
      chunks.push(chunk);
    }
    return new TextDecoder('utf-8', { fatal: true }).decode(Buffer.concat(chunks));
  } catch (thrown) {
    if (thrown instanceof UsageError) throw thrown;
    throw new UsageError(`${source}: ${readFailureReason(thrown as NodeJS.ErrnoException)}.`);
  }
}

function readFailureReason({ code, message }: NodeJS.ErrnoException): string {
  if (code === 'ENOENT') return 'there is no such file';
  if (code === 'EISDIR') return 'it is a directory, not a file';
  if (code === 'EACCES') return 'permission denied';
  return code === 'ERR_ENCODING_INVALID_ENCODED_DATA' ? 'it is not UTF-8 text' : message;
}

async function parseInput(source: string, text: string): Promise<unknown> {
  try {
    return await parseJson(text);
  } catch (thrown) {
    const { message, position } = thrown as DocumentReadError;
    const location = position === undefined ? '' : ` (line ${position.line}, column ${position.column})`;
    throw new UsageError(`${source} cannot be read as JSON: ${message}${location}.`);
  }
}
