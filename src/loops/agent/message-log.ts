/** The messages of a conversation, with their approximate length and a digest over all of them. */
import { digestOfText } from '../../journal/record.js';
import type { ModelMessage, PromptToolCall, PromptToolResult } from '../../protocol/model.js';

/** The assumed length of a number, a boolean or null. */
const SCALAR_CHARS = 4;

/** An append-only list of messages. */
export class MessageLog {
  readonly messages: ModelMessage[] = [];
  /** The approximate length of all messages in characters. */
  lengthChars = 0;
  private chainedDigest = '';
  /** How many messages the digest covers. */
  private digestedCount = 0;

  constructor(earlier: readonly ModelMessage[]) {
    for (const message of earlier) this.add(message);
  }

  /** Appends a message, which must not change afterwards. */
  add(message: ModelMessage): void {
    this.messages.push(message);
    this.lengthChars += messageChars(message);
  }

  /**
   * A digest of the conversation. It is extended incrementally: each read hashes only the messages since the last one.
   */
  get digest(): string {
    const added = this.messages.slice(this.digestedCount).map((message) => JSON.stringify(message));
    if (added.length > 0) this.chainedDigest = digestOfText(`${this.chainedDigest}\n${added.join('\n')}`);
    this.digestedCount = this.messages.length;
    return this.chainedDigest;
  }
}

function messageChars({ content }: ModelMessage): number {
  if (typeof content === 'string') return content.length;
  let length = 0;
  for (const part of content) length += 'text' in part ? part.text.length : toolPartChars(part);
  return length;
}

/** Returns the length of the input of a tool call, or of the output of a tool result. */
function toolPartChars(part: PromptToolCall | PromptToolResult): number {
  if (part.type === 'tool-call') return approximateChars(part.input);
  return approximateChars('value' in part.output ? part.output.value : part.output.reason);
}

/** Estimates the length of a value as JSON. Serializing it only to count would dominate the cost of a round. */
function approximateChars(value: unknown): number {
  if (typeof value === 'string') return value.length;
  if (typeof value !== 'object' || value === null) return SCALAR_CHARS;
  let length = 0;
  for (const key of Object.keys(value))
    length += key.length + approximateChars((value as { readonly [key: string]: unknown })[key]);
  return length;
}
