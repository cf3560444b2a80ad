/**
 * The messages of a model prompt, derived from journaled values. A running turn and a later turn derive the same
 * messages, so no message is stored twice. Reasoning is left out: providers accept it only with their own signature.
 */
import { copyAsJson } from '../json/value.js';
import type { ErrorRecord } from '../protocol/entry.js';
import type { Json } from '../protocol/json.js';
import type { ModelMessage, PromptToolResult, ProviderJson } from '../protocol/model.js';
import { toolNameOf } from './tool-name.js';

/** A tool call of a reply. The input is JSON text, and may be invalid. */
export interface RecordedToolCall {
  readonly id: string;
  /** The loop id of the tool, or the name that the model used if there is no such tool. */
  readonly name: string;
  readonly input: string;
  /** True if the tool declares that it changes nothing. */
  readonly readOnly?: boolean;
}

/** The parts of a model's reply that later prompts contain. */
export interface AssistantReply {
  readonly text: string;
  readonly toolCalls?: readonly RecordedToolCall[];
}

/** The outcome of a tool call. */
export type ToolCallOutcome = { readonly value: Json | undefined } | { readonly error: ErrorRecord };

/** Returns a user message. */
export function userMessage(text: string): ModelMessage {
  return { role: 'user', content: [{ type: 'text', text }] };
}

/** Returns a reply as a message. `args` are the parsed arguments of its tool calls, for a caller that has them. */
export function assistantMessage(
  { text, toolCalls = [] }: AssistantReply,
  args = toolCalls.map(({ input }) => parseArgumentsOrText(input)),
): ModelMessage {
  const content: Extract<ModelMessage, { role: 'assistant' }>['content'] = text === '' ? [] : [{ type: 'text', text }];
  toolCalls.forEach(({ id, name }, index) => {
    content.push({ type: 'tool-call', toolCallId: id, toolName: toolNameOf(name), input: args[index] });
  });
  return { role: 'assistant', content };
}

/** Returns the message with the results of a reply's tool calls. */
export function toolMessage(results: PromptToolResult[]): ModelMessage {
  return { role: 'tool', content: results };
}

/** Returns the outcome of a tool call as part of a prompt. */
export function toolResult({ id, name }: RecordedToolCall, outcome: ToolCallOutcome): PromptToolResult {
  return { type: 'tool-result', toolCallId: id, toolName: toolNameOf(name), output: toolOutputOf(outcome) };
}

/** Returns the arguments of a tool call as a JSON value, or as the text itself if they are invalid. */
export function parseArgumentsOrText(input: string): Json {
  try {
    return parseArguments(input);
  } catch {
    return input;
  }
}

/**
 * Parses the arguments of a tool call; an empty text counts as `{}`. Throws if they are not a JSON value that can be
 * journaled.
 */
export function parseArguments(input: string): Json {
  return copyAsJson(JSON.parse(input === '' ? '{}' : input), 'the arguments') ?? null;
}

function toolOutputOf(outcome: ToolCallOutcome): PromptToolResult['output'] {
  if ('error' in outcome)
    return isUserRejection(outcome.error) ? deniedOutput(outcome.error) : errorOutput(outcome.error);
  const { value = null } = outcome;
  return typeof value === 'string' ? { type: 'text', value } : { type: 'json', value: value as ProviderJson };
}

function errorOutput({ code, message }: ErrorRecord): PromptToolResult['output'] {
  return { type: 'error-text', value: `${code}: ${message}` };
}

function deniedOutput({ message, data }: ErrorRecord): PromptToolResult['output'] {
  const { reason } = data as { readonly reason?: Json };
  return { type: 'execution-denied', reason: typeof reason === 'string' ? reason : message };
}

/** Returns true if a person denied the call; false if the approval expired, the call was blocked, or it failed. */
export function isUserRejection({ code, data }: ErrorRecord): boolean {
  return code === 'APPROVAL_DENIED' && (data as { readonly rejected?: Json } | undefined)?.rejected === true;
}

/**
 * Returns the prompt of an agent's input; without a prompt, its trigger as text; without both, the whole input as JSON.
 */
export function promptOf(input: Json | undefined): string {
  const { prompt, trigger } = (input ?? {}) as { readonly prompt?: Json; readonly trigger?: Json };
  if (typeof prompt === 'string') return prompt;
  const { name, payload } = (trigger ?? {}) as { readonly name?: Json; readonly payload?: Json };
  if (typeof name !== 'string') return JSON.stringify(input ?? null);
  return payload === undefined ? `Trigger: ${name}` : `Trigger: ${name}\n${JSON.stringify(payload)}`;
}
