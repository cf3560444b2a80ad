/**
 * The messages that a model is shown, made of what was journaled. Live and for a later turn the same facts make the same
 * messages, so nothing of a conversation is stored twice. Thinking is left out: providers take it back only as they signed it.
 */
import { copyAsJson } from '../json/value.js';
import type { ErrorRecord } from '../protocol/entry.js';
import type { Json } from '../protocol/json.js';
import type { ModelMessage, PromptToolResult, ProviderJson } from '../protocol/model.js';
import { toolNameOf } from './tool-name.js';

/** A call of a tool as a reply holds it: the input is JSON as text, and may not parse. */
export interface RecordedToolCall {
  readonly id: string;
  /** The id of the loop, whatever the model calls it; of a tool that does not exist, what the model said. */
  readonly name: string;
  readonly input: string;
  /** The tool says that it changes nothing. */
  readonly readOnly?: boolean;
}

/** What a reply says to those who come after it. */
export interface AssistantReply {
  readonly text: string;
  readonly toolCalls?: readonly RecordedToolCall[];
}

/** How a call of a tool ended. */
export type ToolCallOutcome = { readonly value: Json | undefined } | { readonly error: ErrorRecord };

export function userMessage(text: string): ModelMessage {
  return { role: 'user', content: [{ type: 'text', text }] };
}

/** A reply as a message; who has read the arguments of its calls already hands them in. */
export function assistantMessage(
  { text, toolCalls = [] }: AssistantReply,
  given = toolCalls.map(({ input }) => parseArgumentsOrText(input)),
): ModelMessage {
  const content: Extract<ModelMessage, { role: 'assistant' }>['content'] = text === '' ? [] : [{ type: 'text', text }];
  toolCalls.forEach(({ id, name }, index) => {
    content.push({ type: 'tool-call', toolCallId: id, toolName: toolNameOf(name), input: given[index] });
  });
  return { role: 'assistant', content };
}

export function toolMessage(results: PromptToolResult[]): ModelMessage {
  return { role: 'tool', content: results };
}

/** What the model is told of a call of a tool. */
export function toolResult({ id, name }: RecordedToolCall, end: ToolCallOutcome): PromptToolResult {
  return { type: 'tool-result', toolCallId: id, toolName: toolNameOf(name), output: toolOutputOf(end) };
}

/** Arguments as the model wrote them: as a value if they are one that could be journaled, else the very text. */
export function parseArgumentsOrText(input: string): Json {
  try {
    return parseArguments(input);
  } catch {
    return input;
  }
}

/** The value that arguments are; throws what is wrong with them. */
export function parseArguments(input: string): Json {
  return copyAsJson(JSON.parse(input === '' ? '{}' : input), 'the arguments') ?? null;
}

function toolOutputOf(end: ToolCallOutcome): PromptToolResult['output'] {
  if ('error' in end) return isUserRejection(end.error) ? deniedOutput(end.error) : errorOutput(end.error);
  const { value = null } = end;
  return typeof value === 'string' ? { type: 'text', value } : { type: 'json', value: value as ProviderJson };
}

function errorOutput({ code, message }: ErrorRecord): PromptToolResult['output'] {
  return { type: 'error-text', value: `${code}: ${message}` };
}

function deniedOutput({ message, data }: ErrorRecord): PromptToolResult['output'] {
  const { reason } = data as { readonly reason?: Json };
  return { type: 'execution-denied', reason: typeof reason === 'string' ? reason : message };
}

/** Whether a person refused the call, and not the machinery. */
export function isUserRejection({ code, data }: ErrorRecord): boolean {
  return code === 'APPROVAL_DENIED' && (data as { readonly rejected?: Json } | undefined)?.rejected === true;
}

/** The words that an agent is given: its prompt, or all of its input when it has none. */
export function promptOf(input: Json | undefined): string {
  const { prompt, trigger } = (input ?? {}) as { readonly prompt?: Json; readonly trigger?: Json };
  if (typeof prompt === 'string') return prompt;
  const { name, payload } = (trigger ?? {}) as { readonly name?: Json; readonly payload?: Json };
  if (typeof name !== 'string') return JSON.stringify(input ?? null);
  return payload === undefined ? `Trigger: ${name}` : `Trigger: ${name}\n${JSON.stringify(payload)}`;
}
