/** Renders the details of a call: input, prompts, replies, other effects, output and usage, each with a label. */
import { ownProperty, ownText } from '../../base/own-property.js';
import type { Json } from '../../protocol/json.js';
import { type CallDetails, type ModelCallDetails, type UsageDetails, usageOf } from '../../views/call-details.js';
import { breakIntoRows, formatCount, QUOTE_BAR, type TextSpan, truncate } from './terminal-text.js';
import { escapeLine, escapeMultiline } from './untrusted-text.js';

/** Options of `CallDetailRows`. */
interface DetailOptions {
  /** The maximum number of rows of one value. */
  readonly maxRows: number;
  /**
   * True if the usage of each call has a row of its own.
   * @default false
   */
  readonly showsUsage?: boolean;
}

/** One labelled value of a call. */
interface Detail {
  readonly label: string;
  readonly text: string;
}

const LABEL_COLUMNS = 7;
const MIN_VALUE_COLUMNS = 16;

/** Renders the details of calls, and remembers whether it has shortened any. */
export class CallDetailRows {
  private readonly options: DetailOptions;
  private readonly calls: ReadonlyMap<string, CallDetails>;
  /** True if at least one value was not shown completely. */
  hasShortened = false;

  constructor(calls: readonly CallDetails[], options: DetailOptions) {
    this.options = options;
    this.calls = new Map(calls.map((call) => [call.callId, call]));
  }

  /** Returns the rows of a call in at most `columns` columns; none for an unknown call. */
  rowsOf(callId: string, columns: number): readonly (readonly TextSpan[])[] {
    const call = this.calls.get(callId);
    if (call === undefined) return [];
    const { showsUsage = false } = this.options;
    const usage = showsUsage ? usageOf([call]) : undefined;
    const details = [
      ...valueDetail('input', call.input),
      ...call.modelCalls.flatMap(modelCallDetails),
      ...call.effects.flatMap(({ name, input, output }) => [
        ...valueDetail('effect', output === undefined ? { [name]: input ?? null } : { [name]: output }),
      ]),
      ...valueDetail('output', call.output),
      ...(usage === undefined ? [] : [{ label: 'usage', text: usageText(usage) }]),
    ];
    return details.flatMap((detail) => this.rows(detail, columns));
  }

  /** Returns the rows of a labelled value that is not part of a call. */
  rowsFor(label: string, value: Json | undefined, columns: number): readonly (readonly TextSpan[])[] {
    return valueDetail(label, value).flatMap((detail) => this.rows(detail, columns));
  }

  private rows({ label, text }: Detail, columns: number): (readonly TextSpan[])[] {
    const { maxRows } = this.options;
    const valueColumns = Math.max(MIN_VALUE_COLUMNS, columns - LABEL_COLUMNS - QUOTE_BAR.length);
    const all = maxRows === 1 ? [this.singleRow(text, valueColumns)] : wrapValue(text, valueColumns);
    const shown = all.slice(0, maxRows);
    const rows = shown.map((row, index): readonly TextSpan[] => [
      [index === 0 ? label.padEnd(LABEL_COLUMNS) : ' '.repeat(LABEL_COLUMNS), 'dim'],
      [QUOTE_BAR, 'dim'],
      [row],
    ]);
    if (all.length === shown.length) return rows;
    this.hasShortened = true;
    return [...rows, [[`${' '.repeat(LABEL_COLUMNS)}▸ … ${all.length - shown.length} more lines`, 'dim']]];
  }

  private singleRow(text: string, columns: number): string {
    // The text may be very long; one character more than fits is enough to know that it is truncated.
    const escaped = escapeLine(text.slice(0, columns + 1));
    const row = truncate(escaped, columns);
    if (row !== escaped) this.hasShortened = true;
    return row;
  }
}

function wrapValue(text: string, columns: number): readonly string[] {
  return escapeMultiline(text)
    .trimEnd()
    .split('\n')
    .flatMap((line) => breakIntoRows(line, columns));
}

function valueDetail(label: string, value: Json | undefined): readonly Detail[] {
  if (value === undefined) return [];
  return [{ label, text: typeof value === 'string' ? value : JSON.stringify(value) }];
}

function modelCallDetails({ system, prompt, messages, reply, error, isCached }: ModelCallDetails): readonly Detail[] {
  const count = messages === undefined ? undefined : `${messages} ${messages === 1 ? 'message' : 'messages'}`;
  const text = ownText(reply, 'text');
  const reasoning = ownText(reply, 'reasoning');
  return [
    ...(system === undefined ? [] : [{ label: 'system', text: system }]),
    ...(prompt === undefined ? [] : [{ label: 'prompt', text: prompt }]),
    ...(count === undefined ? [] : [{ label: 'prompt', text: count }]),
    ...(reasoning === '' ? [] : [{ label: 'reason', text: reasoning }]),
    ...(text === '' ? [] : [{ label: isCached === true ? 'cached' : 'reply', text }]),
    ...toolCallDetails(reply),
    ...(error === undefined ? [] : [{ label: 'failed', text: `${error.code}: ${error.message}` }]),
  ];
}

function toolCallDetails(reply: Json | undefined): readonly Detail[] {
  const calls = ownProperty(reply, 'toolCalls');
  if (!Array.isArray(calls)) return [];
  return calls.map((call) => ({ label: 'calls', text: `${ownText(call, 'name')} ${ownText(call, 'input')}` }));
}

/** Returns the usage in one line. */
export function usageText({ modelCalls, inputTokens, outputTokens, isEstimated }: UsageDetails): string {
  const count = `${formatCount(modelCalls)} model ${modelCalls === 1 ? 'call' : 'calls'}`;
  const tokens = `${formatCount(inputTokens)} tokens in, ${formatCount(outputTokens)} out`;
  return `${count}, ${tokens}${isEstimated === true ? ' (estimated)' : ''}`;
}

/** The message after output with shortened values. */
export const SHORTENED_HINT = 'Long values are shortened; --full shows them.';
