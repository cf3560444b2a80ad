/**
 * Regular expressions from definitions and documents, matched in linear time (RE2). They are written as ECMA-262 with the
 * u flag, as JSON Schema asks; what RE2 spells in another way is translated, and what has no linear-time match
 * (lookaround, backreferences) is refused.
 */
import { createRequire } from 'node:module';
import type { RE2JS } from 're2js';
import { BoundedCache } from '../base/bounded-cache.js';
import { LoopError } from '../base/errors.js';
import { translateToRe2, UntranslatableError } from './re2-translation.js';

export interface LinearPattern {
  /** Whether the pattern is found anywhere in the text. */
  test(text: string): boolean;
}

const MAX_PATTERN_CHARS = 16_384;

/** What stands for a dot: all but line ends, and which those are differs. */
const ECMA_DOT = '[^\\n\\r\\x{2028}\\x{2029}]';
const PATH_DOT = '[^\\n\\r]';

const requireModule = createRequire(import.meta.url);
let loadedRe2: typeof RE2JS | undefined;

const patternCache = new BoundedCache<LinearPattern>(1_000_000);

/** The pattern ready to match; DEFINITION_INVALID names one that cannot be used. The only flag is `i`; `(?i:…)` works too. */
export function linearPattern(source: string, flags: '' | 'i' = ''): LinearPattern {
  return patternCache.getOrCreate(
    `${flags}/${source}`,
    () => nativePattern(source, flags) ?? compileRe2(source, ECMA_DOT, flags, false),
  );
}

/** Anchored, without groups, alternatives or counts, with one repetition and two optional parts at most: little to try. */
const SAFE_NATIVE_PATTERN = /^\^[^(){}|*+]*[*+]?[^(){}|*+]*$/;
const MANY_OPTIONAL = /\?.*\?.*\?/s;

/** A pattern that the platform's own matcher takes no more than linear time for; most patterns are such. */
function nativePattern(source: string, flags: '' | 'i'): LinearPattern | undefined {
  const bare = source.replace(/\[(?:[^\]\\]|\\.)*\]|\\./gs, 'x');
  if (source.length > MAX_PATTERN_CHARS || !SAFE_NATIVE_PATTERN.test(bare) || MANY_OPTIONAL.test(bare))
    return undefined;
  try {
    return new RegExp(source, `u${flags}`);
  } catch {
    return undefined;
  }
}

/** A pattern of a JSONPath: an RFC 9485 expression, found anywhere or, if `whole`, the whole of the text. */
export function jsonPathPattern(source: string, whole: boolean): LinearPattern {
  return patternCache.getOrCreate(`${whole ? '=' : '~'}/${source}`, () => compileRe2(source, PATH_DOT, '', whole));
}

/** A pattern in RE2's own syntax. Throws RE2's error if it cannot be parsed. */
export function re2Pattern(source: string): RE2JS {
  return re2().compile(source);
}

/** Loaded with the first pattern: many programs have none. */
function re2(): typeof RE2JS {
  loadedRe2 ??= (requireModule('re2js') as typeof import('re2js')).RE2JS;
  return loadedRe2;
}

function compileRe2(source: string, dot: string, flags: '' | 'i', whole: boolean): LinearPattern {
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
    const program = engine.compile(whole ? `^(?:${text})$` : text, flags === 'i' ? engine.CASE_INSENSITIVE : 0);
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

function errorReason(error: unknown, without: RegExp): string {
  return error instanceof Error ? error.message.replace(without, '') : String(error);
}
