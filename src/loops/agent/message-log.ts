/** A conversation in the making: its messages, how long they are, and, for who asks, one digest over all of them. */
import { digestOfText } from '../../journal/record.js';
import type { ModelMessage, PromptToolCall, PromptToolResult } from '../../protocol/model.js';

/** What a number, a truth or nothing is taken for, in characters. */
const SCALAR_CHARS = 4;

export class MessageLog {
  readonly messages: ModelMessage[] = [];
  /** About how many characters all that is said in the messages has. */
  lengthChars = 0;
  private chainedDigest = '';
  /** How many messages the digest is over. */
  private digestedCount = 0;

  constructor(before: readonly ModelMessage[]) {
    for (const message of before) this.add(message);
  }

  /** Takes a message; it is never changed afterwards. */
  add(message: ModelMessage): void {
    this.messages.push(message);
    this.lengthChars += messageChars(message);
  }

  /** Changes with every message, and tells two conversations apart. Asked for once a round, it costs one hash a round. */
  get digest(): string {
    const news = this.messages.slice(this.digestedCount).map((message) => JSON.stringify(message));
    if (news.length > 0) this.chainedDigest = digestOfText(`${this.chainedDigest}\n${news.join('\n')}`);
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

/** Of a call, what it is given; of a result, what came back. */
function toolPartChars(part: PromptToolCall | PromptToolResult): number {
  if (part.type === 'tool-call') return approximateChars(part.input);
  return approximateChars('value' in part.output ? part.output.value : part.output.reason);
}

/** About how many characters a value has: to write it out only to count would cost more than all else in a round. */
function approximateChars(value: unknown): number {
  if (typeof value === 'string') return value.length;
  if (typeof value !== 'object' || value === null) return SCALAR_CHARS;
  let length = 0;
  for (const key of Object.keys(value))
    length += key.length + approximateChars((value as { readonly [key: string]: unknown })[key]);
  return length;
}
