/** What is seen while it happens and never journaled: pieces of messages and of what tools put out. */

/** One piece. The finished message, or the tool's result, comes as an entry and holds all of it. */
export interface LiveDelta {
  readonly kind: 'text' | 'reasoning' | 'tool-input' | 'tool-output';
  readonly text: string;
  /** The call of the agent that it belongs to. */
  readonly generationId: string;
  readonly toolCallId?: string;
  readonly toolName?: string;
  /** What was told of this message before is void: the model is asked again, and it begins anew. */
  readonly isRestart?: true;
}
