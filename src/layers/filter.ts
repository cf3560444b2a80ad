/**
 * The filter layers: they refuse or redact content that a policy does not allow. The input is filtered before anything else
 * sees it, so that the filtered input is what is admitted, shown, approved and performed. The result is filtered outside of
 * the cache layer and the retry layer, so every result is filtered once: cached or new, value or error. The journal holds
 * the original input and the original result too.
 */

import { LoopError, toLoopError } from '../base/errors.js';
import { isObject, ownProperty } from '../base/own-property.js';
import type { Clock } from '../journal/clock.js';
import { type Re2Pattern, re2Pattern } from '../json/linear-pattern.js';
import type { Effect } from '../protocol/body.js';
import type { ErrorRecord } from '../protocol/entry.js';
import type { Json } from '../protocol/json.js';
import type { FilterSpec } from '../protocol/loop.js';
import type { Layer } from '../protocol/session.js';
import { rewriteStrings, type SkippedMembers } from './rewrite-strings.js';

type FilterStage = 'before' | 'after';

interface CompiledFilter {
  readonly policyPath: string;
  readonly pattern: Re2Pattern;
  readonly shouldRefuse: boolean;
  readonly replacement: string;
  readonly reason: string | undefined;
}

/** Upper bound on the filtered characters of one effect and stage. Larger content is refused. */
const MAX_FILTERED_CHARS = 4 * 1024 * 1024;
/** Upper bound on the worst-case cost of one search: characters times the program size of the pattern. */
const MAX_MATCH_COST = 2e8;
/**
 * Time limit for one pass. A single search is linear, but hostile text can make every one of many matches cost a full
 * scan.
 */
const MAX_FILTER_MS = 2000;
const FILTER_TIMEOUT_REASON = 'it takes too long to filter';
const DEFAULT_REPLACEMENT = '[redacted]';

/** Members of model requests and replies that are parameters or identifiers, not content. They are never filtered. */
const MODEL_CONTROL_MEMBERS: SkippedMembers = {
  backendId: true,
  model: true,
  options: true,
  schema: true,
  finish: true,
  toolCalls: { id: true, name: true },
};

/** The compiled filters of each list in a policy. */
const compiledFilters = new WeakMap<readonly FilterSpec[], readonly CompiledFilter[]>();

/** The type of the entry that records an input that filters have changed. */
const INPUT_FILTERED = 'rondo.input.filtered';

/**
 * Creates a layer that filters the input of an effect. If it refuses content, its error is CONTENT_REFUSED and never
 * contains the matched text. The layer throws DEFINITION_INVALID for a pattern that cannot be used. A changed input is
 * recorded once, so that a turn continues with what was approved.
 */
export function inputFilterLayer(specs: readonly FilterSpec[], clock: Clock): Layer {
  return async (effect, scope, next) => {
    const filtered = (): Effect =>
      filterInput(effect, new ContentFilter(compileFilters(specs, 'before'), 'before', effect.name, clock));
    const recorded = scope.nextRecordedEntry;
    const changed = recorded?.type === INPUT_FILTERED ? effect : filtered();
    // An effect whose input was not changed when it began has no such entry.
    const isRecorded = recorded === undefined ? changed !== effect : recorded.type === INPUT_FILTERED;
    if (!isRecorded) return next(changed);
    return next({ ...effect, input: await scope.record(INPUT_FILTERED, () => changed.input as Json) });
  };
}

/** Creates a layer that filters the result of an effect; otherwise like `inputFilterLayer`. */
export function outputFilterLayer(specs: readonly FilterSpec[], clock: Clock): Layer {
  return async (effect, scope, next) => {
    const filters = compileFilters(specs, 'after');
    const skipped = effect.kind === 'model' ? MODEL_CONTROL_MEMBERS : {};
    const newFilter = (): ContentFilter => new ContentFilter(filters, 'after', effect.name, clock);
    let value: Json | undefined;
    try {
      value = (await next()) as Json | undefined;
    } catch (thrown) {
      // A cancellation is not a result of the effect, so it is not filtered.
      throw scope.isCancelled ? thrown : filterError(toLoopError(thrown), newFilter());
    }
    return value === undefined ? undefined : rewriteStrings(value, newFilter().filterText, skipped);
  };
}

/** Returns the effect with its input filtered; the same object if no filter changes it. */
function filterInput(effect: Effect, filter: ContentFilter): Effect {
  if (effect.input === undefined) return effect;
  const input = rewriteStrings(
    effect.input as Json,
    filter.filterText,
    effect.kind === 'model' ? MODEL_CONTROL_MEMBERS : {},
  );
  if (!filter.hasChanged) return effect;
  // The journal has the length of the prompt, which changes with its text.
  const promptLength = ownProperty(input, 'promptLength');
  if (effect.kind !== 'model' || typeof promptLength !== 'number') return { ...effect, input };
  return { ...effect, input: { ...(isObject(input) ? input : {}), promptLength: promptLength + filter.lengthChange } };
}

/** Returns the error with its message and data filtered. Its code is kept. */
function filterError(error: LoopError, filter: ContentFilter): LoopError {
  const record = rewriteStrings(error.toErrorRecord() as unknown as Json, filter.filterText, { code: true });
  return filter.hasChanged ? LoopError.fromErrorRecord(record as unknown as ErrorRecord) : error;
}

/**
 * One pass of filters over all strings of one value. Each filter sees the output of the one before it. Use a new object
 * for each value.
 */
class ContentFilter {
  /** Change of the total length of the strings; negative if they became shorter. */
  lengthChange = 0;
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

  /** Returns the filtered text. Throws CONTENT_REFUSED if a filter refuses it or a limit is exceeded. */
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
    this.lengthChange += clean.length - text.length;
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

  private refusalError(policyPath: string, reason: string | undefined): LoopError {
    const subject = this.stage === 'before' ? 'The input of' : 'The result of';
    const why = reason === undefined ? '' : `: ${reason}`;
    const message = `${subject} "${this.effectName}" was refused by its policy's ${policyPath}${why}.`;
    const data = { stage: this.stage };
    return new LoopError('CONTENT_REFUSED', message, reason === undefined ? data : { ...data, reason });
  }
}

function compileFilters(specs: readonly FilterSpec[], stage: FilterStage): readonly CompiledFilter[] {
  const cached = compiledFilters.get(specs);
  if (cached !== undefined) return cached;
  const filters = specs.map((spec, index): CompiledFilter => {
    const policyPath = `filters.${stage}[${index}]`;
    const { action, replacement = DEFAULT_REPLACEMENT, reason } = spec;
    // Fail closed: only an explicit `redact` replaces a match.
    return {
      policyPath,
      pattern: compilePattern(spec.pattern, policyPath),
      shouldRefuse: action !== 'redact',
      replacement,
      reason,
    };
  });
  compiledFilters.set(specs, filters);
  return filters;
}

const MAX_PATTERN_CHARS = 1000;

/**
 * Compiles a pattern in RE2 syntax. Throws DEFINITION_INVALID if it cannot be parsed, is too long, or matches the empty
 * string.
 */
function compilePattern(pattern: unknown, policyPath: string): Re2Pattern {
  if (typeof pattern !== 'string') throw invalidPatternError(policyPath, 'it is not text');
  if (pattern.length > MAX_PATTERN_CHARS)
    throw invalidPatternError(policyPath, `it is longer than ${MAX_PATTERN_CHARS} characters`);
  const compiled = parsePattern(pattern, policyPath);
  if (compiled.test('')) throw invalidPatternError(policyPath, 'it matches the empty string');
  return compiled;
}

function parsePattern(pattern: string, policyPath: string): Re2Pattern {
  try {
    return re2Pattern(pattern);
  } catch (thrown) {
    throw invalidPatternError(policyPath, thrown instanceof Error ? thrown.message : 'it cannot be read');
  }
}

function invalidPatternError(policyPath: string, why: string): LoopError {
  const message = `The pattern of ${policyPath} cannot be used: ${why}. Write it in RE2 syntax.`;
  return new LoopError('DEFINITION_INVALID', message, { place: policyPath });
}
