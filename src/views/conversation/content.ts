/** What envelopes are filled with, read from inputs, replies and results that may hold anything. */
import { ownProperty, ownText } from '../../base/own-property.js';
import type { ToolCallContent, TriggerContent } from '../../protocol/events.js';
import type { Json } from '../../protocol/json.js';
import { parseArgumentsOrText } from '../messages.js';

/** How much of what a child said is told to its parent's readers. */
const MAX_SUMMARY_CHARS = 500;

/** A message of the user: its text, or all of it as JSON. */
export function userTextOf(value: Json | undefined): string {
  const text = ownProperty(value, 'text');
  if (typeof text === 'string') return text;
  return value === undefined ? '' : JSON.stringify(value);
}

/** What outside the session began a turn; undefined if a person did. */
export function triggerOf(input: Json | undefined): TriggerContent | undefined {
  const trigger = ownProperty(input, 'trigger');
  const triggerName = ownProperty(trigger, 'name');
  if (typeof triggerName !== 'string') return undefined;
  const payload = ownProperty(trigger, 'payload');
  return payload === undefined ? { triggerName } : { triggerName, payload };
}

/** The tools that a reply asks for. */
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

/** The beginning of what a child answered, or else of what it said last. */
export function summaryOf(output: Json | undefined, said: string): string {
  const text = typeof output === 'string' ? output : ownText(output, 'text');
  return truncateToSummary(text === '' ? said : text);
}

/** As much of a text as a summary holds, never half a character. */
export function truncateToSummary(text: string): string {
  if (text.length <= MAX_SUMMARY_CHARS) return text;
  const last = text.charCodeAt(MAX_SUMMARY_CHARS - 1);
  return text.slice(0, last >= 0xd800 && last < 0xdc00 ? MAX_SUMMARY_CHARS - 1 : MAX_SUMMARY_CHARS);
}
