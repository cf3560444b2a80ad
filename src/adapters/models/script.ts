/** A script file: a JSON array with one step for each call of a model. Reading it checks every member and names its place. */
import { readFile, realpath, stat } from 'node:fs/promises';
import { isAbsolute, relative, resolve, sep } from 'node:path';
import type { Origin } from '../../loops/origin.js';
import type { Json } from '../../protocol/json.js';
import { type Answer, split } from './answering.js';
import { delayOf, refused } from './settings.js';

const MAX_BYTES = 8 * 1024 * 1024;

/** One step: what the request must contain, and what is answered or how it fails. */
export interface Step {
  readonly expect: readonly string[];
  readonly error?: { readonly message: string; readonly retryable: boolean };
  readonly answer: Answer;
}

type Fields = { readonly [key: string]: unknown };

/**
 * The real path of a script. A relative one starts at the definition's directory and stays in it, links resolved: a
 * definition is often somebody else's. An absolute one is for code and for definitions that the operator trusts.
 */
export async function placeOf(script: string, { directory, trusted }: Origin): Promise<string> {
  if (isAbsolute(script) && (trusted || directory === undefined)) return real(script, script);
  if (directory === undefined) {
    throw refused(
      `The script '${script}' is relative, and the definition came without a directory; use an absolute path.`,
    );
  }
  const base = await real(directory, directory);
  const place = resolve(base, script);
  const found = within(base, place) ? await real(place, script) : place;
  if (within(base, found)) return found;
  throw refused(`The script '${script}' is outside the directory of its definition; move it there.`);
}

async function real(path: string, named: string): Promise<string> {
  try {
    return await realpath(path);
  } catch {
    throw refused(`The script '${named}' cannot be found or read.`);
  }
}

function within(base: string, path: string): boolean {
  const way = relative(base, path);
  return way !== '' && way !== '..' && !way.startsWith(`..${sep}`) && !isAbsolute(way);
}

/** The steps of a script. */
export async function stepsOf(path: string): Promise<readonly Step[]> {
  const facts = await stat(path);
  if (!facts.isFile()) throw refused(`The script '${path}' is not a file.`);
  if (facts.size > MAX_BYTES) throw refused(`The script '${path}' is larger than ${MAX_BYTES} bytes.`);
  const parsed = parse(await readFile(path, 'utf8'), path);
  if (!Array.isArray(parsed))
    throw refused(`The script '${path}' must be a JSON array with one element for each model call.`);
  return parsed.map((step: unknown, index) => stepOf(step, `The script '${path}', element ${index},`, index));
}

function parse(text: string, path: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    // The parser would quote the file, which may be no script at all.
    throw refused(`The script '${path}' is not JSON.`);
  }
}

const KEYS = ['text', 'object', 'toolCalls', 'reasoning', 'error', 'delayMs', 'chunks', 'usage', 'expect'];

function stepOf(value: unknown, where: string, index: number): Step {
  const step = fieldsOf(value, where, KEYS);
  const { text, object, toolCalls, reasoning, error } = step;
  const pieces = Array.isArray(step.chunks) ? step.chunks : undefined;
  const said = [text, object, toolCalls, reasoning, pieces].filter((part) => part !== undefined).length;
  if (text !== undefined && object !== undefined) throw refused(`${where} has both 'text' and 'object'; keep one.`);
  if (error !== undefined && said > 0) throw refused(`${where} has 'error' and an answer; keep one.`);
  if (error === undefined && said === 0) {
    throw refused(`${where} answers nothing; give it 'text', 'object', 'toolCalls', 'reasoning' or 'error'.`);
  }
  return {
    expect: expectOf(step.expect, where),
    ...(error !== undefined && { error: errorOf(error, where) }),
    answer: {
      chunks: chunksOf(step, where),
      delayMs: delayOf(step.delayMs, `${where} 'delayMs'`),
      ...(reasoning !== undefined && { reasoning: stringOf(reasoning, `${where} 'reasoning'`) }),
      ...(toolCalls !== undefined && { toolCalls: toolCallsOf(toolCalls, where, index) }),
      ...usageOf(step.usage, where),
    },
  };
}

function expectOf(value: unknown, where: string): string[] {
  const list = value === undefined ? [] : Array.isArray(value) ? value : [value];
  return list.map((item: unknown) => stringOf(item, `${where} 'expect'`));
}

function errorOf(value: unknown, where: string): { message: string; retryable: boolean } {
  const { message, retryable = false } = fieldsOf(value, `${where} 'error'`, ['message', 'retryable']);
  if (typeof retryable !== 'boolean') throw refused(`${where} 'error.retryable' must be true or false.`);
  return { message: stringOf(message, `${where} 'error.message'`), retryable };
}

/** The text in pieces: as many as told, or those that are told, which must be the text when there is one. */
function chunksOf({ text, object, chunks = 1 }: Fields, where: string): string[] {
  const whole = object === undefined ? text : JSON.stringify(object);
  if (whole !== undefined) stringOf(whole, `${where} 'text'`);
  if (Array.isArray(chunks)) {
    const pieces = chunks.map((piece: unknown) => stringOf(piece, `${where} 'chunks'`));
    if (whole === undefined || whole === pieces.join('')) return pieces;
    throw refused(`${where} 'chunks' do not make up its text.`);
  }
  if (!Number.isSafeInteger(chunks) || Number(chunks) < 1) {
    throw refused(`${where} 'chunks' must be a whole number from 1, or a list of strings.`);
  }
  return typeof whole === 'string' ? split(whole, Number(chunks)) : [];
}

function toolCallsOf(value: unknown, where: string, index: number): { id: string; name: string; input: string }[] {
  if (!Array.isArray(value)) throw refused(`${where} 'toolCalls' must be a list.`);
  return value.map((item: unknown, nth) => {
    const place = `${where} 'toolCalls[${nth}]'`;
    const { name, args = {}, id = `call-${index}-${nth}` } = fieldsOf(item, place, ['name', 'args', 'id']);
    const input = JSON.stringify(args);
    return { id: stringOf(id, `${place} 'id'`), name: stringOf(name, `${place} 'name'`), input };
  });
}

function usageOf(value: unknown, where: string): { inputTokens?: number; outputTokens?: number } {
  if (value === undefined) return {};
  const usage = fieldsOf(value, `${where} 'usage'`, ['inputTokens', 'outputTokens']);
  for (const [name, tokens] of Object.entries(usage)) {
    if (!Number.isSafeInteger(tokens) || Number(tokens) < 0) {
      throw refused(`${where} 'usage.${name}' must be a whole number from 0.`);
    }
  }
  return usage as { inputTokens?: number; outputTokens?: number };
}

function stringOf(value: unknown, where: string): string {
  if (typeof value === 'string') return value;
  throw refused(`${where} must be a string.`);
}

function fieldsOf(value: unknown, where: string, keys: readonly string[]): Fields {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) throw refused(`${where} must be an object.`);
  const unknown = Object.keys(value).find((key) => !keys.includes(key));
  if (unknown === undefined) return value as { readonly [key: string]: Json };
  throw refused(`${where} has the unknown key '${unknown.slice(0, 60)}'; it may have ${keys.join(', ')}.`);
}
