/**
 * Reads the script files of the provider `scripted`: JSON arrays with one step per model call. Validates every member;
 * errors name its position.
 */
import { readFile, realpath, stat } from 'node:fs/promises';
import { isAbsolute, relative, resolve, sep } from 'node:path';
import type { DefinitionOrigin } from '../../loops/origin.js';
import type { Json } from '../../protocol/json.js';
import { parseDelayMs, permanentBackendError } from './backend-options.js';
import { type CannedReply, splitIntoChunks } from './canned-model.js';

const MAX_SCRIPT_BYTES = 8 * 1024 * 1024;

/** One step of a script: the reply or the error for one model call. */
export interface ScriptStep {
  /** Texts that the request must contain. */
  readonly expect: readonly string[];
  /** The error with which the call fails instead of returning a reply. */
  readonly error?: { readonly message: string; readonly retryable: boolean };
  /** The reply. Of a step with an error, only its delay is used. */
  readonly reply: CannedReply;
}

/**
 * One element of a script: the reply of the model to one call, or the error with which the call fails.
 *
 * @example
 * const replies: ScriptedReply[] = [{ toolCalls: [{ name: 'refund', args: { order: '7' } }] }, { text: 'Done.' }];
 */
export interface ScriptedReply {
  /** The text of the reply. */
  readonly text?: string;
  /** The reply as a JSON value, in place of `text`. */
  readonly object?: Json;
  /** The tool calls that the model chooses. */
  readonly toolCalls?: readonly { readonly name: string; readonly args?: Json; readonly id?: string }[];
  /** The reasoning before the reply. */
  readonly reasoning?: string;
  /** The error with which the call fails. */
  readonly error?: { readonly message: string; readonly retryable?: boolean };
  /**
   * The delay of the reply, in milliseconds.
   * @default 0
   */
  readonly delayMs?: number;
  /**
   * In how many chunks the text is streamed, or the chunks themselves.
   * @default 1
   */
  readonly chunks?: number | readonly string[];
  /** The tokens that the model reports. */
  readonly usage?: { readonly inputTokens?: number; readonly outputTokens?: number };
  /** A text, or several, that the request must contain. The call fails otherwise. */
  readonly expect?: string | readonly string[];
}

type UnknownRecord = { readonly [key: string]: unknown };

/**
 * Returns the real path of a script. A relative path is resolved against the directory of the definition and must stay
 * inside it after resolving links, because definitions may be untrusted. Any absolute path is accepted from a trusted
 * definition and from one without a directory; from others, it must be inside their directory too. Throws
 * BACKEND_FAILED if the path is not accepted or does not exist.
 */
export async function resolveScriptPath(script: string, { directory, trusted }: DefinitionOrigin): Promise<string> {
  if (isAbsolute(script) && (trusted || directory === undefined)) return realPathOf(script, script);
  if (directory === undefined) {
    throw permanentBackendError(
      `The script '${script}' is relative, and the definition came without a directory; use an absolute path.`,
    );
  }
  const base = await realPathOf(directory, directory);
  const path = resolve(base, script);
  const realPath = isStrictlyInside(base, path) ? await realPathOf(path, script) : path;
  if (isStrictlyInside(base, realPath)) return realPath;
  throw permanentBackendError(`The script '${script}' is outside the directory of its definition; move it there.`);
}

async function realPathOf(path: string, displayPath: string): Promise<string> {
  try {
    return await realpath(path);
  } catch {
    throw permanentBackendError(`The script '${displayPath}' cannot be found or read.`);
  }
}

function isStrictlyInside(base: string, path: string): boolean {
  const relativePath = relative(base, path);
  if (relativePath === '' || relativePath === '..') return false;
  return !relativePath.startsWith(`..${sep}`) && !isAbsolute(relativePath);
}

/** Reads the steps of a script. Throws BACKEND_FAILED if it is too large or invalid. */
export async function readScript(path: string): Promise<readonly ScriptStep[]> {
  const status = await stat(path);
  if (!status.isFile()) throw permanentBackendError(`The script '${path}' is not a file.`);
  if (status.size > MAX_SCRIPT_BYTES)
    throw permanentBackendError(`The script '${path}' is larger than ${MAX_SCRIPT_BYTES} bytes.`);
  return parseScript(parseJson(await readFile(path, 'utf8'), path), `The script '${path}'`);
}

/** Checks the elements of a script. `label` begins the messages. Throws BACKEND_FAILED if it is invalid. */
export function parseScript(script: unknown, label: string): readonly ScriptStep[] {
  if (!Array.isArray(script))
    throw permanentBackendError(`${label} must be a JSON array with one element for each model call.`);
  return script.map((step: unknown, index) => parseStep(step, `${label}, element ${index},`, index));
}

function parseJson(text: string, path: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    // The error of JSON.parse quotes the text, which may be a confidential file instead of a script.
    throw permanentBackendError(`The script '${path}' is not JSON.`);
  }
}

const STEP_KEYS = ['text', 'object', 'toolCalls', 'reasoning', 'error', 'delayMs', 'chunks', 'usage', 'expect'];

function parseStep(value: unknown, where: string, index: number): ScriptStep {
  const step = requireObject(value, where, STEP_KEYS);
  const { text, object, toolCalls, reasoning, error } = step;
  const chunks = Array.isArray(step.chunks) ? step.chunks : undefined;
  const hasReply = [text, object, toolCalls, reasoning, chunks].some((part) => part !== undefined);
  if (text !== undefined && object !== undefined)
    throw permanentBackendError(`${where} has both 'text' and 'object'; keep one.`);
  if (error !== undefined && hasReply) throw permanentBackendError(`${where} has 'error' and an answer; keep one.`);
  if (error === undefined && !hasReply) {
    throw permanentBackendError(`${where} has no answer; add 'text', 'object', 'toolCalls', 'reasoning' or 'error'.`);
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

/**
 * Returns the chunks in which the text is streamed. `chunks` is their number, or the list of the chunks themselves,
 * which must then add up to the text if the step has one.
 */
function parseChunks({ text, object, chunks = 1 }: UnknownRecord, where: string): string[] {
  const fullText = object === undefined ? text : JSON.stringify(object);
  if (fullText !== undefined) requireString(fullText, `${where} 'text'`);
  if (Array.isArray(chunks)) {
    const list = chunks.map((chunk: unknown) => requireString(chunk, `${where} 'chunks'`));
    if (fullText === undefined || fullText === list.join('')) return list;
    throw permanentBackendError(`${where} 'chunks' do not add up to its text.`);
  }
  if (!Number.isSafeInteger(chunks) || Number(chunks) < 1) {
    throw permanentBackendError(`${where} 'chunks' must be an integer of at least 1, or an array of strings.`);
  }
  return typeof fullText === 'string' ? splitIntoChunks(fullText, Number(chunks)) : [];
}

function parseToolCalls(value: unknown, where: string, index: number): { id: string; name: string; input: string }[] {
  if (!Array.isArray(value)) throw permanentBackendError(`${where} 'toolCalls' must be an array.`);
  return value.map((item: unknown, callIndex) => {
    const label = `${where} 'toolCalls[${callIndex}]'`;
    const { name, args = {}, id = `call-${index}-${callIndex}` } = requireObject(item, label, ['name', 'args', 'id']);
    const input = JSON.stringify(args);
    return { id: requireString(id, `${label} 'id'`), name: requireString(name, `${label} 'name'`), input };
  });
}

function parseUsage(value: unknown, where: string): { inputTokens?: number; outputTokens?: number } {
  if (value === undefined) return {};
  const usage = requireObject(value, `${where} 'usage'`, ['inputTokens', 'outputTokens']);
  for (const [name, tokens] of Object.entries(usage)) {
    if (!Number.isSafeInteger(tokens) || Number(tokens) < 0) {
      throw permanentBackendError(`${where} 'usage.${name}' must be an integer of at least 0.`);
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
  const unknownKey = Object.keys(value).find((key) => !keys.includes(key));
  if (unknownKey === undefined) return value as { readonly [key: string]: Json };
  throw permanentBackendError(
    `${where} has the unknown key '${unknownKey.slice(0, 60)}'; it may have ${keys.join(', ')}.`,
  );
}
