/** Patterns of filters: RE2 syntax, so that no text can make one match in more than linear time. */
import { createRequire } from 'node:module';
import type { RE2JS } from 're2js';
import { LoopError } from '../base/errors.js';

const LONGEST = 1000;
/** Loaded with the first filter: most programs have none. */
const load = createRequire(import.meta.url);

/** A compiled pattern; DEFINITION_INVALID if it is no pattern, is too long, or is found in every text. */
export function compilePattern(pattern: unknown, place: string): RE2JS {
  if (typeof pattern !== 'string') throw invalid(place, 'it is not text');
  if (pattern.length > LONGEST) throw invalid(place, `it is longer than ${LONGEST} characters`);
  const compiled = parsed(pattern, place);
  if (compiled.test('')) throw invalid(place, 'it matches the empty text, and so every text');
  return compiled;
}

function parsed(pattern: string, place: string): RE2JS {
  try {
    return (load('re2js') as typeof import('re2js')).RE2JS.compile(pattern);
  } catch (thrown) {
    throw invalid(place, thrown instanceof Error ? thrown.message : 'it cannot be read');
  }
}

function invalid(place: string, why: string): LoopError {
  const message = `The pattern of ${place} cannot be used: ${why}. Write it in RE2 syntax.`;
  return new LoopError('DEFINITION_INVALID', message, { place });
}
