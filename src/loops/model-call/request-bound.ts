/** The bound of a request to a model: how many tokens the call can use at most. */
import { tokenBoundOf } from '../../policy/token-count.js';
import type { TokenBound } from '../../protocol/body.js';
import type { ModelMessage } from '../../protocol/model.js';
import type { ModelConversation, ModelRequest } from '../model.js';

/** What a request can use at most. The size is computed when it is read, because most turns limit no tokens. */
class RequestBound implements TokenBound {
  readonly maxOutputTokens: number | undefined;
  private readonly request: ModelRequest;
  private readonly conversation: ModelConversation | undefined;
  private readonly contextMessage: ModelMessage | undefined;

  constructor(request: ModelRequest, conversation?: ModelConversation, contextMessage?: ModelMessage) {
    this.maxOutputTokens = request.maxTokens;
    this.request = request;
    this.conversation = conversation;
    this.contextMessage = contextMessage;
  }

  get inputBytes(): number {
    const { prompt, system = this.conversation?.system, schema = this.conversation?.schema } = this.request;
    const { messages = [], tools = [] } = this.conversation ?? {};
    const parts = [prompt ?? '', system ?? '', schema ?? null, messages, tools, this.contextMessage ?? null];
    return tokenBoundOf(JSON.stringify(parts));
  }
}

/** Returns what a request can use at most, with the rest of the conversation that it belongs to. */
export function requestBound(
  request: ModelRequest,
  conversation: ModelConversation | undefined,
  contextMessage?: ModelMessage,
): TokenBound {
  return new RequestBound(request, conversation, contextMessage);
}
