/** A script file: a JSON array with one step for each call of a model. Reading it checks every member and names its place. */
import { readFile, realpath, stat } from 'node:fs/promises';
import { isAbsolute, relative, resolve, sep } from 'node:path';
import type { DefinitionOrigin } from '../../loops/origin.js';
import type { Json } from '../../protocol/json.js';
import { parseDelayMs, permanentBackendError } from './backend-options.js';
import { type CannedReply, splitIntoChunks } from './canned-model.js';

const MAX_SCRIPT_BYTES = 8 * 1024 * 1024;

/** One step: what the request must contain, and what is answered or how it fails. */
export interface ScriptStep {
  readonly expect: readonly string[];
  readonly error?: { readonly message: string; readonly retryable: boolean };
  readonly reply: CannedReply;
}

type UnknownRecord = { readonly [key: string]: unknown };

/**
 * The real path of a script. A relative one starts at the definition's directory and stays in it, links resolved: a
 * definition is often somebody else's. An absolute one is for code and for definitions that the operator trusts.
 */
export async function resolveScriptPath(script: string, { directory, trusted }: DefinitionOrigin): Promise<string> {
  if (isAbsolute(script) && (trusted || directory === undefined)) return realPathOf(script, script);
  if (directory === undefined) {
    throw permanentBackendError(
      `The script '${script}' is relative, and the definition came without a directory; use an absolute path.`,
    );
  }
  const base = await realPathOf(directory, directory);
  const place = resolve(base, script);
  const found = isStrictlyInside(base, place) ? await realPathOf(place, script) : place;
  if (isStrictlyInside(base, found)) return found;
  throw permanentBackendError(`The script '${script}' is outside the directory of its definition; move it there.`);
}

async function realPathOf(path: string, named: string): Promise<string> {
  try {
    return await realpath(path);
  } catch {
    throw permanentBackendError(`The script '${named}' cannot be found or read.`);
  }
}

function isStrictlyInside(base: string, path: string): boolean {
  const way = relative(base, path);
  return way !== '' && way !== '..' && !way.startsWith(`..${sep}`) && !isAbsolute(way);
}

/** The steps of a script. */
export async function readScript(path: string): Promise<readonly ScriptStep[]> {
  const facts = await stat(path);
  if (!facts.isFile()) throw permanentBackendError(`The script '${path}' is not a file.`);
  if (facts.size > MAX_SCRIPT_BYTES)
    throw permanentBackendError(`The script '${path}' is larger than ${MAX_SCRIPT_BYTES} bytes.`);
  const parsed = parseJson(await readFile(path, 'utf8'), path);
  if (!Array.isArray(parsed))
    throw permanentBackendError(`The script '${path}' must be a JSON array with one element for each model call.`);
  return parsed.map((step: unknown, index) => parseStep(step, `The script '${path}', element ${index},`, index));
}

function parseJson(text: string, path: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    // The parser would quote the file, which may be no script at all.
    throw permanentBackendError(`The script '${path}' is not JSON.`);
  }
}

const STEP_KEYS = ['text', 'object', 'toolCalls', 'reasoning', 'error', 'delayMs', 'chunks', 'usage', 'expect'];

function parseStep(value: unknown, where: string, index: number): ScriptStep {
  const step = requireObject(value, where, STEP_KEYS);
  const { text, object, toolCalls, reasoning, error } = step;
  const pieces = Array.isArray(step.chunks) ? step.chunks : undefined;
  const said = [text, object, toolCalls, reasoning, pieces].filter((part) => part !== undefined).length;
  if (text !== undefined && object !== undefined)
    throw permanentBackendError(`${where} has both 'text' and 'object'; keep one.`);
  if (error !== undefined && said > 0) throw permanentBackendError(`${where} has 'error' and an answer; keep one.`);
  if (error === undefined && said === 0) {
    throw permanentBackendError(
      `${where} answers nothing; give it 'text', 'object', 'toolCalls', 'reasoning' or 'error'.`,
    );
  }
  return {
    expect: parseExpect(step.expect, where),
    ...(error !== undefined && { error: parseError(error, where) }),
    reply: {
      chunks: parseChunks(step, where),
      delayMs: parseDelayMs(step.delayMs, `${where} 'delayMs'`),
      ...(reasoning !== undefined && { reasoning: requireString(reasoning, `${where} 'reasoning'`) }),
      ...(toolCalls !== undefined && { toolCalls: parseToolCalls(toolCalls, where, index) }),
      ...parseUsage(step.usage, where),
    },
  };
}

function parseExpect(value: unknown, where: string): string[] {
  const list = value === undefined ? [] : Array.isArray(value) ? value : [value];
  return list.map((item: unknown) => requireString(item, `${where} 'expect'`));
}

function parseError(value: unknown, where: string): { message: string; retryable: boolean } {
  const { message, retryable = false } = requireObject(value, `${where} 'error'`, ['message', 'retryable']);
  if (typeof retryable !== 'boolean') throw permanentBackendError(`${where} 'error.retryable' must be true or false.`);
  return { message: requireString(message, `${where} 'error.message'`), retryable };
}

/** The text in pieces: as many as told, or those that are told, which must be the text when there is one. */
function parseChunks({ text, object, chunks = 1 }: UnknownRecord, where: string): string[] {
  const whole = object === undefined ? text : JSON.stringify(object);
  if (whole !== undefined) requireString(whole, `${where} 'text'`);
  if (Array.isArray(chunks)) {
    const pieces = chunks.map((piece: unknown) => requireString(piece, `${where} 'chunks'`));
    if (whole === undefined || whole === pieces.join('')) return pieces;
    throw permanentBackendError(`${where} 'chunks' do not make up its text.`);
  }
  if (!Number.isSafeInteger(chunks) || Number(chunks) < 1) {
    throw permanentBackendError(`${where} 'chunks' must be a whole number from 1, or a list of strings.`);
  }
  return typeof whole === 'string' ? splitIntoChunks(whole, Number(chunks)) : [];
}

function parseToolCalls(value: unknown, where: string, index: number): { id: string; name: string; input: string }[] {
  if (!Array.isArray(value)) throw permanentBackendError(`${where} 'toolCalls' must be a list.`);
  return value.map((item: unknown, nth) => {
    const place = `${where} 'toolCalls[${nth}]'`;
    const { name, args = {}, id = `call-${index}-${nth}` } = requireObject(item, place, ['name', 'args', 'id']);
    const input = JSON.stringify(args);
    return { id: requireString(id, `${place} 'id'`), name: requireString(name, `${place} 'name'`), input };
  });
}

function parseUsage(value: unknown, where: string): { inputTokens?: number; outputTokens?: number } {
  if (value === undefined) return {};
  const usage = requireObject(value, `${where} 'usage'`, ['inputTokens', 'outputTokens']);
  for (const [name, tokens] of Object.entries(usage)) {
    if (!Number.isSafeInteger(tokens) || Number(tokens) < 0) {
      throw permanentBackendError(`${where} 'usage.${name}' must be a whole number from 0.`);
    }
  }
  return usage as { inputTokens?: number; outputTokens?: number };
}

function requireString(value: unknown, where: string): string {
  if (typeof value === 'string') return value;
  throw permanentBackendError(`${where} must be a string.`);
}

function requireObject(value: unknown, where: string, keys: readonly string[]): UnknownRecord {
  if (typeof value !== 'object' || value === null || Array.isArray(value))
    throw permanentBackendError(`${where} must be an object.`);
  const unknown = Object.keys(value).find((key) => !keys.includes(key));
  if (unknown === undefined) return value as { readonly [key: string]: Json };
  throw permanentBackendError(
    `${where} has the unknown key '${unknown.slice(0, 60)}'; it may have ${keys.join(', ')}.`,
  );
}
