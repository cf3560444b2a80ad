// The server-sent events of OpenAI's chat API and Anthropic's Messages API, for the test server.

/** The events of one protocol, which tests combine into responses. */
export interface Dialect {
  readonly path: string;
  /** The start of a reply by this model. */
  begin(model: string): string[];
  text(delta: string): string;
  toolCall(id: string, name: string, pieces: readonly string[]): string[];
  /** The end of a reply, with the token usage. */
  end(reason: 'stop' | 'tool' | 'length', usage?: { input: number; output: number }): string[];
  /** An error in the middle of a stream. */
  error(message: string): string;
  /** The body of an error response. */
  document(message: string): unknown;
}

const chunk = (fields: object): string =>
  `data: ${JSON.stringify({ id: 'x1', object: 'chat.completion.chunk', created: 1, ...fields })}\n\n`;
const choice = (delta: object, reason: string | null = null): string =>
  chunk({ model: 'm-answered', choices: [{ index: 0, delta, finish_reason: reason }] });

/** OpenAI's chat API. */
export const chat: Dialect = {
  path: '/chat/completions',
  begin: (model) => [chunk({ model, choices: [{ index: 0, delta: { role: 'assistant', content: '' } }] })],
  text: (content) => choice({ content }),
  toolCall: (id, name, [first = '', ...rest]) => [
    choice({ tool_calls: [{ index: 0, id, type: 'function', function: { name, arguments: first } }] }),
    ...rest.map((piece) => choice({ tool_calls: [{ index: 0, function: { arguments: piece } }] })),
  ],
  end: (reason, usage) => [
    choice({}, { stop: 'stop', tool: 'tool_calls', length: 'length' }[reason]),
    ...(usage
      ? [
          chunk({
            choices: [],
            usage: {
              prompt_tokens: usage.input,
              completion_tokens: usage.output,
              total_tokens: usage.input + usage.output,
            },
          }),
        ]
      : []),
    'data: [DONE]\n\n',
  ],
  error: (message) => `data: ${JSON.stringify({ error: { message, type: 'server_error', code: 'server_error' } })}\n\n`,
  document: (message) => ({ error: { message, type: 'some_error', param: null, code: null } }),
};

const event = (type: string, fields: object): string =>
  `event: ${type}\ndata: ${JSON.stringify({ type, ...fields })}\n\n`;
const block = (index: number, content: object, ...deltas: object[]): string[] => [
  event('content_block_start', { index, content_block: content }),
  ...deltas.map((delta) => event('content_block_delta', { index, delta })),
  event('content_block_stop', { index }),
];

/** Anthropic's Messages API. */
export const messages: Dialect = {
  path: '/messages',
  begin: (model) => [
    event('message_start', {
      message: {
        id: 'x1',
        type: 'message',
        role: 'assistant',
        model,
        content: [],
        stop_reason: null,
        stop_sequence: null,
        usage: { input_tokens: 7, output_tokens: 1 },
      },
    }),
    event('content_block_start', { index: 0, content_block: { type: 'text', text: '' } }),
    event('ping', {}),
  ],
  text: (text) => event('content_block_delta', { index: 0, delta: { type: 'text_delta', text } }),
  toolCall: (id, name, pieces) =>
    block(
      1,
      { type: 'tool_use', id, name, input: {} },
      ...pieces.map((partial_json) => ({ type: 'input_json_delta', partial_json })),
    ),
  end: (reason, usage = { input: 7, output: 1 }) => [
    event('content_block_stop', { index: 0 }),
    event('message_delta', {
      delta: {
        stop_reason: { stop: 'end_turn', tool: 'tool_use', length: 'max_tokens' }[reason],
        stop_sequence: null,
      },
      usage: { input_tokens: usage.input, output_tokens: usage.output },
    }),
    event('message_stop', {}),
  ],
  error: (message) => event('error', { error: { type: 'overloaded_error', message } }),
  document: (message) => ({ type: 'error', error: { type: 'some_error', message } }),
};
