/** A conversation in the making: its messages, how long they are, and, for who asks, one digest over all of them. */
import { digest } from '../../journal/record.js';
import type { ModelMessage, PromptToolCall, PromptToolResult } from '../../protocol/model.js';

/** What a number, a truth or nothing is taken for, in characters. */
const SCALAR = 4;

export class Dialogue {
  readonly messages: ModelMessage[] = [];
  /** About how many characters all that is said in the messages has. */
  length = 0;
  private chained = '';
  /** How many messages the digest is over. */
  private digested = 0;

  constructor(before: readonly ModelMessage[]) {
    for (const message of before) this.add(message);
  }

  /** Takes a message; it is never changed afterwards. */
  add(message: ModelMessage): void {
    this.messages.push(message);
    this.length += lengthOf(message);
  }

  /** Changes with every message, and tells two conversations apart. Asked for once a round, it costs one hash a round. */
  get digest(): string {
    const news = this.messages.slice(this.digested).map((message) => JSON.stringify(message));
    if (news.length > 0) this.chained = digest(`${this.chained}\n${news.join('\n')}`);
    this.digested = this.messages.length;
    return this.chained;
  }
}

function lengthOf({ content }: ModelMessage): number {
  if (typeof content === 'string') return content.length;
  let length = 0;
  for (const part of content) length += 'text' in part ? part.text.length : saidIn(part);
  return length;
}

/** Of a call, what it is given; of a result, what came back. */
function saidIn(part: PromptToolCall | PromptToolResult): number {
  if (part.type === 'tool-call') return extent(part.input);
  return extent('value' in part.output ? part.output.value : part.output.reason);
}

/** About how many characters a value has: to write it out only to count would cost more than all else in a round. */
function extent(value: unknown): number {
  if (typeof value === 'string') return value.length;
  if (typeof value !== 'object' || value === null) return SCALAR;
  let length = 0;
  for (const key of Object.keys(value))
    length += key.length + extent((value as { readonly [key: string]: unknown })[key]);
  return length;
}
