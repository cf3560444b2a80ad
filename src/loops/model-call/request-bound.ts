/** The bounds of a request to a model: how many tokens the call can use at most, and its input at least. */
import { minTokensOf, tokenBoundOf } from '../../policy/token-count.js';
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

  get minInputTokens(): number {
    const { prompt = '', system = this.conversation?.system ?? '' } = this.request;
    const messages = [...(this.conversation?.messages ?? []), this.contextMessage].flatMap(textsOf);
    return minTokensOf([prompt, system, ...messages]);
  }
}

/** Returns the texts of a message that its sender wrote. What a provider adds to them, such as names, is not counted. */
function textsOf(message: ModelMessage | undefined): readonly string[] {
  if (message === undefined || message.role === 'system') return message === undefined ? [] : [message.content];
  return message.content.map((part) => {
    if (part.type === 'tool-call') return JSON.stringify(part.input) ?? '';
    if (part.type !== 'tool-result') return part.text;
    const { output } = part;
    if (output.type === 'execution-denied') return output.reason ?? '';
    return typeof output.value === 'string' ? output.value : JSON.stringify(output.value);
  });
}

/** Returns what a request can use at most, with the rest of the conversation that it belongs to. */
export function requestBound(
  request: ModelRequest,
  conversation: ModelConversation | undefined,
  contextMessage?: ModelMessage,
): TokenBound {
  return new RequestBound(request, conversation, contextMessage);
}
