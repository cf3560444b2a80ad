/** The contents of envelopes, read from untrusted inputs, replies and results. */
import { ownProperty, ownText } from '../../base/own-property.js';
import type { ToolCallContent, TriggerContent } from '../../protocol/events.js';
import type { Json } from '../../protocol/json.js';
import { parseArgumentsOrText } from '../messages.js';

/** The maximum length of the summary of a child generation, in UTF-16 units. */
const MAX_SUMMARY_CHARS = 500;

/** Returns the text of a user message; a value without text as JSON, and an empty string for undefined. */
export function userTextOf(value: Json | undefined): string {
  const text = ownProperty(value, 'text');
  if (typeof text === 'string') return text;
  return value === undefined ? '' : JSON.stringify(value);
}

/** Returns a text unchanged, and any other value as JSON. */
export function textOf(value: Json): string {
  return typeof value === 'string' ? value : JSON.stringify(value);
}

/** Returns the text of a prompt's output: the text itself, that of an object with only a text, or else JSON. */
export function answerTextOf(output: Json): string {
  const text = ownProperty(output, 'text');
  return typeof text === 'string' && Object.keys(output as object).length === 1 ? text : textOf(output);
}

/** Returns the trigger in the input of a turn; undefined if there is none. */
export function triggerOf(input: Json | undefined): TriggerContent | undefined {
  const trigger = ownProperty(input, 'trigger');
  const triggerName = ownProperty(trigger, 'name');
  if (typeof triggerName !== 'string') return undefined;
  const payload = ownProperty(trigger, 'payload');
  return payload === undefined ? { triggerName } : { triggerName, payload };
}

/** Returns the tool calls of a model's reply. Arguments that are not valid JSON are returned as text. */
export function toolCallsOf(reply: Json | undefined): readonly ToolCallContent[] {
  const calls = ownProperty(reply, 'toolCalls');
  if (!Array.isArray(calls)) return [];
  return (calls as readonly Json[]).map((call) => ({
    toolCallId: ownText(call, 'id'),
    toolName: ownText(call, 'name'),
    args: parseArgumentsOrText(ownText(call, 'input')),
    readOnly: ownProperty(call, 'readOnly') === true,
  }));
}

/** Returns the start of a child's output text, or of its last message if the output has no text. */
export function summaryOf(output: Json | undefined, lastText: string): string {
  const text = typeof output === 'string' ? output : ownText(output, 'text');
  return truncateToSummary(text === '' ? lastText : text);
}

/** Truncates a text to the length of a summary without splitting a surrogate pair. */
export function truncateToSummary(text: string): string {
  if (text.length <= MAX_SUMMARY_CHARS) return text;
  const lastUnit = text.charCodeAt(MAX_SUMMARY_CHARS - 1);
  return text.slice(0, lastUnit >= 0xd800 && lastUnit < 0xdc00 ? MAX_SUMMARY_CHARS - 1 : MAX_SUMMARY_CHARS);
}
