/**
 * The one way in which tokens are counted: as the provider reports them or, if it does not, as the size of the text in
 * bytes of UTF-8, which no count of tokens exceeds.
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

/** Returns the maximum number of tokens of a text. */
export function tokenBoundOf(text: string): number {
  return Buffer.byteLength(text);
}

/** Returns the maximum number of tokens that a reply can consist of. */
export function outputTokenBound({ text, reasoning = '', toolCalls = [] }: CountedReply): number {
  return toolCalls.reduce(
    (sum, { name, input }) => sum + tokenBoundOf(name) + tokenBoundOf(input),
    tokenBoundOf(text) + tokenBoundOf(reasoning),
  );
}

/** Returns the tokens of a call: as reported, or else their bounds. */
export function tokensOf(reply: CountedReply, inputBytes: number): TokenCount {
  return {
    inputTokens: reply.inputTokens ?? inputBytes,
    outputTokens: reply.outputTokens ?? outputTokenBound(reply),
  };
}
