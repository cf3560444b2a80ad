// Agents for tests: a model that answers from a list of replies, and definitions of agents and their tools.
export function partsOf(reply, nth) {
    const { text = '', reasoning = '', calls = [], usage = [7, 3], finish } = reply;
    const block = (kind, words) => words === ''
        ? []
        : [
            { type: `${kind}-start`, id: kind },
            ...words.split(/(?<= )/).map((delta) => ({ type: `${kind}-delta`, id: kind, delta })),
            { type: `${kind}-end`, id: kind },
        ];
    const asked = calls.flatMap(([toolName, args, id = `call-${nth}`], index) => {
        const toolCallId = calls.length > 1 && id === `call-${nth}` ? `${id}-${index}` : id;
        const input = typeof args === 'string' ? args : JSON.stringify(args);
        return [
            { type: 'tool-input-start', id: toolCallId, toolName },
            { type: 'tool-input-delta', id: toolCallId, delta: input },
            { type: 'tool-input-end', id: toolCallId },
            { type: 'tool-call', toolCallId, toolName, input },
        ];
    });
    const unified = (finish ?? (calls.length > 0 ? 'tool-calls' : 'stop'));
    const [input, output] = usage;
    return [
        { type: 'stream-start', warnings: [] },
        ...block('reasoning', reasoning),
        ...block('text', text),
        ...asked,
        ...(reply.error === undefined ? [] : [{ type: 'error', error: reply.error }]),
        {
            type: 'finish',
            finishReason: { unified, raw: unified },
            usage: {
                inputTokens: { total: input, noCache: undefined, cacheRead: undefined, cacheWrite: undefined },
                outputTokens: { total: output, text: undefined, reasoning: undefined },
            },
        },
    ];
}
/** A model that answers these replies, one after another, and keeps what it was asked. */
export function modelOf(replies, id = 'told') {
    const asked = [];
    return {
        asked,
        specificationVersion: 'v3',
        provider: id,
        modelId: `${id}-1`,
        supportedUrls: {},
        doGenerate: () => Promise.reject(new Error('only streams')),
        doStream: async (call) => {
            const nth = asked.push(call) - 1;
            const scripted = replies[nth];
            if (scripted === undefined)
                throw new Error(`The model was asked ${nth + 1} times; it has ${replies.length} replies.`);
            const parts = partsOf(typeof scripted === 'function' ? scripted(call) : scripted, nth);
            return { stream: ReadableStream.from(parts) };
        },
    };
}
/** A backend of these replies, which goes on where the session stands. */
export function told(replies, id = 'told') {
    const asked = [];
    return {
        id,
        defaultModel: `${id}-1`,
        asked,
        open: async (_, { answered }) => {
            const model = modelOf(replies.slice(answered), id);
            return {
                ...model,
                doStream: (call) => {
                    asked.push(call);
                    return model.doStream(call);
                },
            };
        },
    };
}
/** An agent as a document. */
export function agentDef(id, spec = {}, more = {}) {
    return {
        id,
        name: id,
        version: '1.0.0',
        inputSchema: { type: 'object', properties: { prompt: { type: 'string' } }, required: ['prompt'] },
        outputSchema: { type: 'object', properties: { text: { type: 'string' } }, required: ['text'] },
        kind: 'composite',
        composite: { agent: { backend: { id: 'told' }, tools: [], ...spec } },
        ...more,
    };
}
