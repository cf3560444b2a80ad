/**
 * Regular expressions from definitions and documents, matched in linear time: by the native engine if that is provably
 * linear, otherwise by RE2. Patterns use ECMA-262 syntax with the u flag, as JSON Schema requires. For RE2 they are
 * translated; constructs without a linear-time match (lookaround, backreferences) are refused.
 */
import { createRequire } from 'node:module';
import type { RE2JS } from 're2js';
import { BoundedCache } from '../base/bounded-cache.js';
import { LoopError } from '../base/errors.js';
import { translateToRe2, UntranslatableError } from './re2-translation.js';

/** A compiled pattern. */
export interface LinearPattern {
  /** Returns true if the pattern matches anywhere in the text, or the entire text if it was compiled so. */
  test(text: string): boolean;
}

const MAX_PATTERN_CHARS = 16_384;

/** The RE2 class of a dot: all characters but line terminators, which differ between ECMA-262 and JSONPath. */
const ECMA_DOT = '[^\\n\\r\\x{2028}\\x{2029}]';
const PATH_DOT = '[^\\n\\r]';

const requireModule = createRequire(import.meta.url);
let loadedRe2: typeof RE2JS | undefined;

const patternCache = new BoundedCache<LinearPattern>(1_000_000);

/**
 * Compiles a pattern. Throws DEFINITION_INVALID if it is malformed, too long or unsupported. The only flag is `i`;
 * `(?i:…)` is supported too.
 */
export function linearPattern(source: string, flags: '' | 'i' = ''): LinearPattern {
  return patternCache.getOrCreate(
    `${flags}/${source}`,
    () => nativePattern(source, flags) ?? compileRe2(source, ECMA_DOT, flags, false),
  );
}

/**
 * Patterns that the native engine matches in linear time: anchored at the start, no groups, alternatives or counts, at
 * most one repetition and two optional parts.
 */
const SAFE_NATIVE_PATTERN = /^\^[^(){}|*+]*[*+]?[^(){}|*+]*$/;
const MANY_OPTIONAL = /\?.*\?.*\?/s;

/** Returns a native RegExp if it provably matches in linear time, as for most patterns; otherwise undefined. */
function nativePattern(source: string, flags: '' | 'i'): LinearPattern | undefined {
  // Classes and escapes count as one character.
  const simplified = source.replace(/\[(?:[^\]\\]|\\.)*\]|\\./gs, 'x');
  if (source.length > MAX_PATTERN_CHARS || !SAFE_NATIVE_PATTERN.test(simplified) || MANY_OPTIONAL.test(simplified))
    return undefined;
  try {
    return new RegExp(source, `u${flags}`);
  } catch {
    return undefined;
  }
}

/**
 * Compiles a pattern of a JSONPath filter (RFC 9485). If `matchesEntireText`, it must match the entire text. Throws
 * DEFINITION_INVALID if it is malformed, too long or unsupported.
 */
export function jsonPathPattern(source: string, matchesEntireText: boolean): LinearPattern {
  return patternCache.getOrCreate(`${matchesEntireText ? '=' : '~'}/${source}`, () =>
    compileRe2(source, PATH_DOT, '', matchesEntireText),
  );
}

/** A compiled pattern in RE2's own syntax. The members are those of RE2JS, whose types need a newer compiler. */
export interface Re2Pattern extends LinearPattern {
  /** Returns the matches in a text, in order. */
  matcher(text: string): { find(): boolean; start(): number; end(): number };
  /** The number of instructions, which determines the cost of a search. */
  programSize(): number;
}

/** Compiles a pattern in RE2's own syntax. Throws RE2's error if it cannot be parsed. */
export function re2Pattern(source: string): Re2Pattern {
  return re2().compile(source);
}

/** Returns the RE2 engine, loaded on first use, because many programs need none. */
function re2(): typeof RE2JS {
  loadedRe2 ??= (requireModule('re2js') as typeof import('re2js')).RE2JS;
  return loadedRe2;
}

function compileRe2(source: string, dot: string, flags: '' | 'i', matchesEntireText: boolean): LinearPattern {
  if (source.length > MAX_PATTERN_CHARS)
    throw patternError(source, `it is longer than ${MAX_PATTERN_CHARS} characters`);
  try {
    new RegExp(source.replaceAll('(?i:', '(?:'), 'u');
  } catch (error) {
    throw patternError(source, errorReason(error, /.*: /s));
  }
  try {
    const text = translateToRe2(source, dot);
    const engine = re2();
    const anchored = matchesEntireText ? `^(?:${text})$` : text;
    const program = engine.compile(anchored, flags === 'i' ? engine.CASE_INSENSITIVE : 0);
    return { test: (value) => program.test(value) };
  } catch (error) {
    if (error instanceof UntranslatableError) throw patternError(source, error.message);
    throw patternError(source, `RE2 cannot match it: ${errorReason(error, /^error parsing regexp: /)}`);
  }
}

function patternError(source: string, reason: string): LoopError {
  const message = `The pattern ${quotePattern(source)} cannot be used: ${reason}.`;
  return new LoopError('DEFINITION_INVALID', message, { pattern: quotePattern(source), reason });
}

function quotePattern(source: string): string {
  return JSON.stringify(source.length > 100 ? `${source.slice(0, 100)}…` : source);
}

function errorReason(error: unknown, prefix: RegExp): string {
  return error instanceof Error ? error.message.replace(prefix, '') : String(error);
}
