/**
 * Content filters: what may not go out or come in is refused or replaced. They stand outside of the cache and of
 * retries, so they see what goes out once, and whatever comes back: kept or fresh, answer or error.
 * They guard the way out and the way in, not the journal, which holds what was asked for and what came back.
 */

import type { RE2JS } from 're2js';
import { LoopError, toLoopError } from '../base/errors.js';
import { isObject, ownProperty } from '../base/own-property.js';
import type { Clock } from '../journal/clock.js';
import { re2Pattern } from '../json/linear-pattern.js';
import type { Effect } from '../protocol/body.js';
import type { ErrorRecord } from '../protocol/entry.js';
import type { Json } from '../protocol/json.js';
import type { FilterSpec, PolicySpec } from '../protocol/loop.js';
import type { Layer } from '../protocol/session.js';
import { rewriteStrings, type SkippedMembers } from './rewrite-strings.js';

type FilterStage = 'before' | 'after';

interface CompiledFilter {
  readonly policyPath: string;
  readonly pattern: RE2JS;
  readonly shouldRefuse: boolean;
  readonly replacement: string;
  readonly reason: string | undefined;
}

/** Characters that are filtered for one effect and stage; more is refused. */
const MAX_FILTERED_CHARS = 4 * 1024 * 1024;
/** Characters times steps of the pattern: what one search may cost at worst. */
const MAX_MATCH_COST = 2e8;
/** One search is linear, but a text can be made so that each of its many matches costs a search to its end. */
const MAX_FILTER_MS = 2000;
const FILTER_TIMEOUT_REASON = 'it takes too long to filter';
const DEFAULT_REPLACEMENT = '[redacted]';

/** What steers a model and names its tool calls is no content; everything else in a request or a reply is. */
const MODEL_CONTROL_MEMBERS: SkippedMembers = {
  backendId: true,
  model: true,
  options: true,
  schema: true,
  finish: true,
  toolCalls: { id: true, name: true },
};

const compiledFilters = new WeakMap<readonly FilterSpec[], readonly CompiledFilter[]>();

/** Filters what is sent and what comes back; a refusal is CONTENT_REFUSED and never tells what was found. */
export function filterLayer({ before = [], after = [] }: NonNullable<PolicySpec['filters']>, clock: Clock): Layer {
  return async (effect, scope, next) => {
    const [outwards, inwards] = [compileFilters(before, 'before'), compileFilters(after, 'after')];
    const sent =
      outwards.length === 0 ? effect : filterInput(effect, new ContentFilter(outwards, 'before', effect.name, clock));
    if (inwards.length === 0) return next(sent);
    const kept = effect.kind === 'model' ? MODEL_CONTROL_MEMBERS : {};
    const sieve = (): ContentFilter => new ContentFilter(inwards, 'after', effect.name, clock);
    let value: Json | undefined;
    try {
      value = (await next(sent)) as Json | undefined;
    } catch (thrown) {
      // How the run itself ended is not what came back.
      throw !scope.isCancelled ? filterError(toLoopError(thrown), sieve()) : thrown;
    }
    return value === undefined ? undefined : rewriteStrings(value, sieve().filterText, kept);
  };
}

function filterInput(effect: Effect, sieve: ContentFilter): Effect {
  if (effect.input === undefined) return effect;
  const input = rewriteStrings(
    effect.input as Json,
    sieve.filterText,
    effect.kind === 'model' ? MODEL_CONTROL_MEMBERS : {},
  );
  const promptLength = ownProperty(input, 'promptLength');
  if (effect.kind !== 'model' || typeof promptLength !== 'number') return { ...effect, input };
  return { ...effect, input: { ...(isObject(input) ? input : {}), promptLength: promptLength + sieve.addedChars } };
}

function filterError(error: LoopError, sieve: ContentFilter): LoopError {
  const record = rewriteStrings(error.toErrorRecord() as unknown as Json, sieve.filterText, { code: true });
  return sieve.hasChanged ? LoopError.fromErrorRecord(record as unknown as ErrorRecord) : error;
}

/** One pass of filters over all texts of a value, each filter over what the one before it left. */
class ContentFilter {
  /** By how many characters the texts became longer. */
  addedChars = 0;
  hasChanged = false;
  private remainingChars = MAX_FILTERED_CHARS;
  private readonly filters: readonly CompiledFilter[];
  private readonly stage: FilterStage;
  private readonly effectName: string;
  private readonly clock: Clock;
  private readonly deadlineAt: number;

  constructor(filters: readonly CompiledFilter[], stage: FilterStage, name: string, clock: Clock) {
    this.filters = filters;
    this.stage = stage;
    this.effectName = name;
    this.clock = clock;
    this.deadlineAt = clock.elapsed() + MAX_FILTER_MS;
  }

  readonly filterText = (text: string): string => {
    let clean = text;
    for (const filter of this.filters) {
      this.assertWithinLimits(clean.length);
      if (clean.length * filter.pattern.programSize() > MAX_MATCH_COST)
        throw this.refusalError(filter.policyPath, FILTER_TIMEOUT_REASON);
      if (!filter.pattern.test(clean)) continue;
      if (filter.shouldRefuse) throw this.refusalError(filter.policyPath, filter.reason);
      clean = this.redactMatches(clean, filter);
    }
    this.remainingChars -= clean.length;
    this.addedChars += clean.length - text.length;
    this.hasChanged ||= clean !== text;
    return clean;
  };

  private redactMatches(text: string, { pattern, replacement }: CompiledFilter): string {
    const matcher = pattern.matcher(text);
    let clean = '';
    let from = 0;
    while (matcher.find()) {
      const [start, end] = [matcher.start(), matcher.end()];
      if (start === end) continue;
      clean += text.slice(from, start) + replacement;
      from = end;
      this.assertWithinLimits(clean.length);
    }
    return clean + text.slice(from);
  }

  private assertWithinLimits(length: number): void {
    if (length > this.remainingChars)
      throw this.refusalError('filters', `it is longer than ${MAX_FILTERED_CHARS} characters`);
    if (this.clock.elapsed() > this.deadlineAt) throw this.refusalError('filters', FILTER_TIMEOUT_REASON);
  }

  private refusalError(place: string, reason: string | undefined): LoopError {
    const what = this.stage === 'before' ? 'What was to be sent to' : 'What came back from';
    const why = reason === undefined ? '' : `: ${reason}`;
    const message = `${what} "${this.effectName}" was refused by its policy's ${place}${why}.`;
    const data = { stage: this.stage };
    return new LoopError('CONTENT_REFUSED', message, reason === undefined ? data : { ...data, reason });
  }
}

function compileFilters(specs: readonly FilterSpec[], stage: FilterStage): readonly CompiledFilter[] {
  const known = compiledFilters.get(specs);
  if (known !== undefined) return known;
  const filters = specs.map((spec, index): CompiledFilter => {
    const place = `filters.${stage}[${index}]`;
    const { action, replacement = DEFAULT_REPLACEMENT, reason } = spec;
    // Whatever is not clearly to be replaced is refused.
    return {
      policyPath: place,
      pattern: compilePattern(spec.pattern, place),
      shouldRefuse: action !== 'redact',
      replacement,
      reason,
    };
  });
  compiledFilters.set(specs, filters);
  return filters;
}

const MAX_PATTERN_CHARS = 1000;

/** Compiles a filter's pattern, in RE2 syntax. DEFINITION_INVALID if it cannot be parsed, is too long, or matches every text. */
function compilePattern(pattern: unknown, place: string): RE2JS {
  if (typeof pattern !== 'string') throw invalidPattern(place, 'it is not text');
  if (pattern.length > MAX_PATTERN_CHARS)
    throw invalidPattern(place, `it is longer than ${MAX_PATTERN_CHARS} characters`);
  const compiled = parsePattern(pattern, place);
  if (compiled.test('')) throw invalidPattern(place, 'it matches the empty text, and so every text');
  return compiled;
}

function parsePattern(pattern: string, place: string): RE2JS {
  try {
    return re2Pattern(pattern);
  } catch (thrown) {
    throw invalidPattern(place, thrown instanceof Error ? thrown.message : 'it cannot be read');
  }
}

function invalidPattern(place: string, why: string): LoopError {
  const message = `The pattern of ${place} cannot be used: ${why}. Write it in RE2 syntax.`;
  return new LoopError('DEFINITION_INVALID', message, { place });
}
