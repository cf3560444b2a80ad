/** Live deltas: pieces of messages and of tool output. They are streamed and never journaled. */

/**
 * One piece of a message or of tool output. The finished message or tool result follows as an entry that contains the
 * whole text.
 */
export interface LiveDelta {
  readonly kind: 'text' | 'reasoning' | 'tool-input' | 'tool-output';
  readonly text: string;
  /** The key of the agent's call that the piece belongs to. */
  readonly generationId: string;
  readonly toolCallId?: string;
  readonly toolName?: string;
  /** True if the model is called again for this message. Discard its earlier pieces. */
  readonly isRestart?: true;
}
