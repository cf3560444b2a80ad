/**
 * Content filters: what may not go out or come in is refused or replaced. They stand outside of the cache and of
 * retries, so they see what goes out once, and whatever comes back: kept or fresh, answer or error.
 * They guard the way out and the way in, not the journal, which holds what was asked for and what came back.
 */

import type { RE2JS } from 're2js';
import { LoopError, outcomeOf } from '../base/errors.js';
import { isObject, ownProperty } from '../base/own-property.js';
import type { Clock } from '../journal/clock.js';
import { re2Pattern } from '../json/pattern.js';
import type { Layer } from '../kernel/layer.js';
import type { Effect } from '../protocol/body.js';
import type { ErrorRecord } from '../protocol/entry.js';
import type { Json } from '../protocol/json.js';
import type { FilterSpec, PolicySpec } from '../protocol/loop.js';
import { type Kept, rewriteTexts } from './rewrite.js';

type Stage = 'before' | 'after';

interface Filter {
  readonly place: string;
  readonly pattern: RE2JS;
  readonly refuses: boolean;
  readonly replacement: string;
  readonly reason: string | undefined;
}

/** Characters that are filtered for one effect and stage; more is refused. */
const MOST = 4 * 1024 * 1024;
/** Characters times steps of the pattern: what one search may cost at worst. */
const WORK = 2e8;
/** One search is linear, but a text can be made so that each of its many matches costs a search to its end. */
const PATIENCE_MS = 2000;
const TOO_LONG = 'it takes too long to filter';
const REPLACEMENT = '[redacted]';

/** What steers a model and names its tool calls is no content; everything else in a request or a reply is. */
const STEERING: Kept = {
  backendId: true,
  model: true,
  options: true,
  schema: true,
  finish: true,
  toolCalls: { id: true, name: true },
};

const compiled = new WeakMap<readonly FilterSpec[], readonly Filter[]>();

/** Filters what is sent and what comes back; a refusal is CONTENT_REFUSED and never tells what was found. */
export function filterLayer({ before = [], after = [] }: NonNullable<PolicySpec['filters']>, clock: Clock): Layer {
  return async (effect, scope, next) => {
    const [outwards, inwards] = [filtersOf(before, 'before'), filtersOf(after, 'after')];
    const sent = outwards.length === 0 ? effect : withInput(effect, new Sieve(outwards, 'before', effect.name, clock));
    if (inwards.length === 0) return next(sent);
    const kept = effect.kind === 'model' ? STEERING : {};
    const sieve = (): Sieve => new Sieve(inwards, 'after', effect.name, clock);
    let value: Json | undefined;
    try {
      value = (await next(sent)) as Json | undefined;
    } catch (thrown) {
      // How the run itself ended is not what came back.
      throw !scope.isCancelled ? withoutContent(outcomeOf(thrown), sieve()) : thrown;
    }
    return value === undefined ? undefined : rewriteTexts(value, sieve().pass, kept);
  };
}

function withInput(effect: Effect, sieve: Sieve): Effect {
  if (effect.input === undefined) return effect;
  const input = rewriteTexts(effect.input as Json, sieve.pass, effect.kind === 'model' ? STEERING : {});
  const promptLength = ownProperty(input, 'promptLength');
  if (effect.kind !== 'model' || typeof promptLength !== 'number') return { ...effect, input };
  return { ...effect, input: { ...(isObject(input) ? input : {}), promptLength: promptLength + sieve.growth } };
}

function withoutContent(error: LoopError, sieve: Sieve): LoopError {
  const record = rewriteTexts(error.record() as unknown as Json, sieve.pass, { code: true });
  return sieve.changed ? LoopError.of(record as unknown as ErrorRecord) : error;
}

/** One pass of filters over all texts of a value, each filter over what the one before it left. */
class Sieve {
  /** By how many characters the texts became longer. */
  growth = 0;
  changed = false;
  private left = MOST;
  private readonly filters: readonly Filter[];
  private readonly stage: Stage;
  private readonly name: string;
  private readonly clock: Clock;
  private readonly until: number;

  constructor(filters: readonly Filter[], stage: Stage, name: string, clock: Clock) {
    this.filters = filters;
    this.stage = stage;
    this.name = name;
    this.clock = clock;
    this.until = clock.elapsed() + PATIENCE_MS;
  }

  readonly pass = (text: string): string => {
    let clean = text;
    for (const filter of this.filters) {
      this.check(clean.length);
      if (clean.length * filter.pattern.programSize() > WORK) throw this.refused(filter.place, TOO_LONG);
      if (!filter.pattern.test(clean)) continue;
      if (filter.refuses) throw this.refused(filter.place, filter.reason);
      clean = this.redacted(clean, filter);
    }
    this.left -= clean.length;
    this.growth += clean.length - text.length;
    this.changed ||= clean !== text;
    return clean;
  };

  private redacted(text: string, { pattern, replacement }: Filter): string {
    const matcher = pattern.matcher(text);
    let clean = '';
    let from = 0;
    while (matcher.find()) {
      const [start, end] = [matcher.start(), matcher.end()];
      if (start === end) continue;
      clean += text.slice(from, start) + replacement;
      from = end;
      this.check(clean.length);
    }
    return clean + text.slice(from);
  }

  private check(length: number): void {
    if (length > this.left) throw this.refused('filters', `it is longer than ${MOST} characters`);
    if (this.clock.elapsed() > this.until) throw this.refused('filters', TOO_LONG);
  }

  private refused(place: string, reason: string | undefined): LoopError {
    const what = this.stage === 'before' ? 'What was to be sent to' : 'What came back from';
    const why = reason === undefined ? '' : `: ${reason}`;
    const message = `${what} "${this.name}" was refused by its policy's ${place}${why}.`;
    const data = { stage: this.stage };
    return new LoopError('CONTENT_REFUSED', message, reason === undefined ? data : { ...data, reason });
  }
}

function filtersOf(specs: readonly FilterSpec[], stage: Stage): readonly Filter[] {
  const known = compiled.get(specs);
  if (known !== undefined) return known;
  const filters = specs.map((spec, index): Filter => {
    const place = `filters.${stage}[${index}]`;
    const { action, replacement = REPLACEMENT, reason } = spec;
    // Whatever is not clearly to be replaced is refused.
    return { place, pattern: compilePattern(spec.pattern, place), refuses: action !== 'redact', replacement, reason };
  });
  compiled.set(specs, filters);
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
