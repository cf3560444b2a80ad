/**
 * The one way in which tokens are counted. If the provider reports none, they are the size of the text in bytes of UTF-8,
 * which no count of tokens exceeds. A reported number counts, but at least as many as the text has in any tokenizer, so
 * that a provider that reports too few passes no limit.
 */

/** What a reply reports and contains. */
interface CountedReply {
  readonly inputTokens?: number | undefined;
  readonly outputTokens?: number | undefined;
  readonly text: string;
  readonly reasoning?: string | undefined;
  readonly toolCalls?: readonly { readonly name: string; readonly input: string }[] | undefined;
}

/** The tokens of one model call. */
export interface TokenCount {
  readonly inputTokens: number;
  readonly outputTokens: number;
}

/** A space, and all control characters below it, separate words. */
const SPACE = 32;
/** The weight of a character. One that repeats the character before it, and a space, weigh 1: tokenizers join long runs. */
const CHAR_WEIGHT = 16;
/** The weight that the first token of a word can have: 24 characters. */
const FIRST_TOKEN_WEIGHT = 24 * CHAR_WEIGHT;
/** The weight that each further token can have: 8 characters. */
const NEXT_TOKEN_WEIGHT = 8 * CHAR_WEIGHT;

/** Counts the minimum number of tokens of a text, piece by piece. Every tokenizer in use begins a token with each word. */
export class MinTokenCounter {
  tokens = 0;
  private previous = SPACE;
  /** The weight that the last token has left. */
  private room = FIRST_TOKEN_WEIGHT;

  /** Adds the next piece of the text. */
  add(piece: string): void {
    for (let index = 0; index < piece.length; index++) {
      const char = piece.charCodeAt(index);
      const isSpace = char <= SPACE;
      if (!isSpace && this.previous <= SPACE) {
        this.tokens += 1;
        this.room = FIRST_TOKEN_WEIGHT;
      }
      this.room -= isSpace || char === this.previous ? 1 : CHAR_WEIGHT;
      if (this.room < 0) {
        this.tokens += 1;
        this.room += NEXT_TOKEN_WEIGHT;
      }
      this.previous = char;
    }
  }
}

/** Returns the minimum number of tokens of texts. */
export function minTokensOf(texts: readonly string[]): number {
  return texts.reduce((sum, text) => {
    const counter = new MinTokenCounter();
    counter.add(text);
    return sum + counter.tokens;
  }, 0);
}

/** Returns the maximum number of tokens of a text. */
export function tokenBoundOf(text: string): number {
  return Buffer.byteLength(text);
}

/** Returns the texts that a reply consists of. */
function textsOf({ text, reasoning = '', toolCalls = [] }: CountedReply): readonly string[] {
  return [text, reasoning, ...toolCalls.flatMap(({ name, input }) => [name, input])];
}

/** Returns the output tokens of a reply: as reported, but at least its minimum, or else its maximum. */
export function outputTokensOf(reply: CountedReply): number {
  const texts = textsOf(reply);
  if (reply.outputTokens === undefined) return texts.reduce((sum, text) => sum + tokenBoundOf(text), 0);
  // guard: too-few-tokens-not-believed
  return Math.max(reply.outputTokens, minTokensOf(texts));
}

/** Returns the tokens of a call. `inputBytes` and `minInputTokens` are the maximum and the minimum of its request. */
export function tokensOf(reply: CountedReply, inputBytes: number, minInputTokens: number): TokenCount {
  const { inputTokens } = reply;
  return {
    inputTokens: inputTokens === undefined ? inputBytes : Math.max(inputTokens, minInputTokens),
    outputTokens: outputTokensOf(reply),
  };
}
