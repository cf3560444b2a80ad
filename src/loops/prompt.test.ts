import { expect } from 'vitest';
import { hostOf, prompt, textProvider, typesOf } from '../../spec/support/host-fixture.js';
import { errorOf, outputOf } from '../../spec/support/turn-results.js';
import { verifies } from '../../spec/verifies.js';

const object = (name: string): object => ({
  type: 'object',
  properties: { [name]: { type: 'string' } },
  required: [name],
  additionalProperties: false,
});

const scripted = { backend: { id: 'replies' } };

async function run(template: string, input: unknown, replies: readonly string[], outputSchema: unknown = true) {
  const provider = textProvider(replies);
  const host = hostOf([prompt('p', template, { ...scripted, outputSchema: outputSchema as boolean })], {
    providers: [provider],
  });
  return { result: await host.run({ loop: 'p', input }), requests: provider.requests };
}

verifies('prompt.template', 'a placeholder in a value is not expanded', async () => {
  const { result, requests } = await run(
    '{{a}} and {{ b.c }} of {{d}}',
    { a: '{{b.c}}', b: { c: 'C' }, d: [1, null] },
    ['ok'],
  );
  expect(result.status).toBe('ok');
  expect(requests[0]?.prompt).toContain('{{b.c}} and C of [1,null]');
});

for (const [name, input] of [
  ['missing', {}],
  ['on the prototype', { a: {} }],
  ['inside a text', { a: 'x' }],
  ['inside null', { a: null }],
] as const) {
  verifies(
    'prompt.template',
    `a variable that is ${name} is TEMPLATE_FAILED, and the model is not called`,
    async () => {
      const { result, requests } = await run('{{a.constructor}}', input, ['ok']);
      expect(result).toMatchObject({ status: 'error', error: { code: 'TEMPLATE_FAILED' } });
      expect(errorOf(result)?.message).toContain('{{a.constructor}}');
      expect(requests).toEqual([]);
      expect(typesOf(result.trace, result.callId)).toEqual(['call.started', 'call.input.validated', 'call.errored']);
    },
  );
}

verifies('prompt.template', 'null and an empty text are values, not missing variables', async () => {
  const { result, requests } = await run('[{{a}}][{{b}}]', { a: null, b: '' }, ['ok']);
  expect(result.status).toBe('ok');
  expect(requests[0]?.prompt).toContain('[][]');
});

for (const [form, text, schema, output] of [
  ['JSON', ' {"x":"1"} ', object('x'), { x: '1' }],
  ['JSON in a fence', 'Sure!\n```json\n{"x":"1"}\n```\nBye', object('x'), { x: '1' }],
  ['plain text', 'just text', object('text'), { text: 'just text' }],
  ['text for a loop that returns text', '{"x":1}', { type: 'string' }, '{"x":1}'],
  ['a number for a loop that returns one', ' 42\n', { type: 'number' }, 42],
  ['JSON without a schema', '[1,2]', true, [1, 2]],
  ['a word without a schema', 'true', true, { text: 'true' }],
] as const) {
  verifies('prompt.reply', `${form} is parsed into the output`, async () => {
    const { result, requests } = await run('hi', {}, [text], schema);
    expect(result).toMatchObject({ status: 'ok', output });
    expect(requests).toHaveLength(1);
  });
}

verifies('prompt.reply', 'an invalid reply is returned to the model once, with its errors', async () => {
  const repaired = await run('hi', {}, ['{"y":1}', '{"x":"1"}'], object('x'));
  expect(repaired.result).toMatchObject({ status: 'ok', output: { x: '1' } });
  expect(repaired.requests[1]?.prompt).toContain('does not fit');
  const failed = await run('hi', {}, ['{"y":1}', '{"y":2}', '{"x":"1"}'], object('x'));
  expect(failed.result).toMatchObject({ status: 'error', error: { code: 'OUTPUT_VALIDATION_FAILED' } });
  expect(failed.requests).toHaveLength(2);
});

verifies('prompt.reply', 'a failed repair reports the invalid first reply', async () => {
  const { result } = await run('hi', {}, ['{"y":1}'], object('x'));
  expect(result).toMatchObject({ status: 'error', error: { code: 'OUTPUT_VALIDATION_FAILED' } });
});

verifies('policy.order', 'the first route whose conditions hold selects the backend', async () => {
  const providers = [
    textProvider(['own'], 'replies'),
    textProvider(['long'], 'long'),
    textProvider(['german'], 'german'),
  ];
  const policy = {
    routing: [
      { when: { promptLengthOver: 20 }, backend: { id: 'long' } },
      { when: { input: { '$.lang': 'de' } }, backend: { id: 'german' } },
    ],
  };
  const host = hostOf([prompt('p', '{{text}}', { ...scripted, policy })], { providers });
  const ask = async (input: object): Promise<unknown> => outputOf(await host.run({ loop: 'p', input }));
  expect(await ask({ text: 'a text that is far too long', lang: 'de' })).toEqual({ text: 'long' });
  expect(await ask({ text: 'kurz', lang: 'de' })).toEqual({ text: 'german' });
  expect(await ask({ text: 'short', lang: 'en' })).toEqual({ text: 'own' });
});
