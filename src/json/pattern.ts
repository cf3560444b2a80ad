/**
 * Regular expressions from definitions and documents, matched in linear time (RE2). They are written as ECMA-262 with the
 * u flag, as JSON Schema asks; what RE2 spells in another way is translated, and what has no linear-time match
 * (lookaround, backreferences) is refused.
 */
import { createRequire } from 'node:module';
import type { RE2JS } from 're2js';
import { LoopError } from '../base/errors.js';
import { Recent } from '../base/recent.js';
import { translate, Untranslatable } from './translate.js';

export interface LinearPattern {
  /** Whether the pattern is found anywhere in the text. */
  test(text: string): boolean;
}

const LENGTH = 16_384;

/** What stands for a dot: all but line ends, and which those are differs. */
const ECMA_DOT = '[^\\n\\r\\x{2028}\\x{2029}]';
const PATH_DOT = '[^\\n\\r]';

const load = createRequire(import.meta.url);
let loaded: typeof RE2JS | undefined;

const patterns = new Recent<LinearPattern>(1_000_000);

/** The pattern ready to match; DEFINITION_INVALID names one that cannot be used. The only flag is `i`; `(?i:…)` works too. */
export function linearPattern(source: string, flags: '' | 'i' = ''): LinearPattern {
  return patterns.of(`${flags}/${source}`, () => plain(source, flags) ?? compile(source, ECMA_DOT, flags, false));
}

/** Anchored, without groups, alternatives or counts, with one repetition and two optional parts at most: little to try. */
const PLAIN = /^\^[^(){}|*+]*[*+]?[^(){}|*+]*$/;
const MANY_OPTIONAL = /\?.*\?.*\?/s;

/** A pattern that the platform's own matcher takes no more than linear time for; most patterns are such. */
function plain(source: string, flags: '' | 'i'): LinearPattern | undefined {
  const bare = source.replace(/\[(?:[^\]\\]|\\.)*\]|\\./gs, 'x');
  if (source.length > LENGTH || !PLAIN.test(bare) || MANY_OPTIONAL.test(bare)) return undefined;
  try {
    return new RegExp(source, `u${flags}`);
  } catch {
    return undefined;
  }
}

/** A pattern of a JSONPath: an RFC 9485 expression, found anywhere or, if `whole`, the whole of the text. */
export function pathPattern(source: string, whole: boolean): LinearPattern {
  return patterns.of(`${whole ? '=' : '~'}/${source}`, () => compile(source, PATH_DOT, '', whole));
}

/** A pattern in RE2's own syntax. Throws RE2's error if it cannot be parsed. */
export function re2Pattern(source: string): RE2JS {
  return engineOf().compile(source);
}

/** Loaded with the first pattern: many programs have none. */
function engineOf(): typeof RE2JS {
  loaded ??= (load('re2js') as typeof import('re2js')).RE2JS;
  return loaded;
}

function compile(source: string, dot: string, flags: '' | 'i', whole: boolean): LinearPattern {
  if (source.length > LENGTH) throw refused(source, `it is longer than ${LENGTH} characters`);
  try {
    new RegExp(source.replaceAll('(?i:', '(?:'), 'u');
  } catch (error) {
    throw refused(source, reasonOf(error, /.*: /s));
  }
  try {
    const text = translate(source, dot);
    const engine = engineOf();
    const program = engine.compile(whole ? `^(?:${text})$` : text, flags === 'i' ? engine.CASE_INSENSITIVE : 0);
    return { test: (value) => program.test(value) };
  } catch (error) {
    if (error instanceof Untranslatable) throw refused(source, error.message);
    throw refused(source, `RE2 cannot match it: ${reasonOf(error, /^error parsing regexp: /)}`);
  }
}

function refused(source: string, reason: string): LoopError {
  const message = `The pattern ${shown(source)} cannot be used: ${reason}.`;
  return new LoopError('DEFINITION_INVALID', message, { pattern: shown(source), reason });
}

function shown(source: string): string {
  return JSON.stringify(source.length > 100 ? `${source.slice(0, 100)}…` : source);
}

function reasonOf(error: unknown, without: RegExp): string {
  return error instanceof Error ? error.message.replace(without, '') : String(error);
}
