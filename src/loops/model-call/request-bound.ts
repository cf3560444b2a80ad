/** The bound of a request to a model: how many tokens the call can use at most. */
import { tokenBoundOf } from '../../policy/token-count.js';
import type { TokenBound } from '../../protocol/body.js';
import type { ModelConversation, ModelRequest } from '../model.js';

/** What a request can use at most. The size is computed when it is read, because most turns limit no tokens. */
class RequestBound implements TokenBound {
  readonly maxOutputTokens: number | undefined;
  private readonly request: ModelRequest;
  private readonly conversation: ModelConversation | undefined;

  constructor(request: ModelRequest, conversation: ModelConversation | undefined) {
    this.maxOutputTokens = request.maxTokens;
    this.request = request;
    this.conversation = conversation;
  }

  get inputBytes(): number {
    const { prompt, system = this.conversation?.system, schema = this.conversation?.schema } = this.request;
    const { messages = [], tools = [] } = this.conversation ?? {};
    return tokenBoundOf(JSON.stringify([prompt ?? '', system ?? '', schema ?? null, messages, tools]));
  }
}

/** Returns what a request can use at most, with the rest of the conversation that it belongs to. */
export function requestBound(request: ModelRequest, conversation: ModelConversation | undefined): TokenBound {
  return new RequestBound(request, conversation);
}
