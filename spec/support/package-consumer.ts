// A program of a consumer of the package. spec/types/matrix.process.test.ts compiles it against the packed declarations with
// several compilers and settings; it is never run. It uses no other package, so that each error is one of the package.

import {
  type AnySchema,
  defineAgent,
  defineLoop,
  defineSignal,
  type InputOf,
  LoopError,
  type OutputOf,
  type PendingItem,
  type ResultError,
  type Rondo,
  type StandardSchema,
  TurnPaused,
  type TurnResult,
  TurnStopped,
} from 'rondo';

type Equal<A, B> = (<T>() => T extends A ? 1 : 2) extends <T>() => T extends B ? 1 : 2 ? true : false;

/** Accepts only a pair of identical types. */
declare function same<A, B>(proof: Equal<A, B>): void;

declare const order: StandardSchema<{ sku: string; amount?: number }, { sku: string; amount: number }>;
declare const anySchema: AnySchema;

/** A Standard Schema: the body gets its output type, callers pass its input type. */
const priced = defineLoop({
  id: 'priced',
  input: order,
  output: order,
  run: async ({ sku, amount }) => {
    same<typeof amount, number>(true);
    return { sku };
  },
});
same<InputOf<typeof order>, { sku: string; amount?: number }>(true);
same<OutputOf<typeof order>, { sku: string; amount: number }>(true);

/** JSON Schema literals: both sides are inferred, without `as const`. */
export const greet = defineLoop({
  id: 'greet',
  input: {
    type: 'object',
    properties: {
      name: { type: 'string' },
      mood: { enum: ['glad', 'sad'] },
      tags: { type: 'array', items: { type: 'string' } },
    },
    required: ['name'],
  },
  output: { type: 'object', properties: { text: { type: 'string' } }, required: ['text'] },
  run: async ({ name, mood, tags }, scope) => {
    same<typeof name, string>(true);
    same<typeof mood, 'glad' | 'sad' | undefined>(true);
    same<typeof tags, string[] | undefined>(true);
    const { amount } = await scope.call(priced, { sku: name });
    same<typeof amount, number>(true);
    const [first, second] = await scope.all([async () => 1, (branch) => branch.call(priced, { sku: name })]);
    same<typeof first, number>(true);
    return { text: `${second.sku} ${first}` };
  },
});

/** A schema that is not a literal: anything. */
export const anything = defineLoop({ id: 'anything', input: anySchema, output: true, run: (input) => input });

/** Each status has its own members. */
export function describe(result: TurnResult<{ text: string }>): string {
  // @ts-expect-error: only a result with the status `ok` has an output.
  result.output;
  switch (result.status) {
    case 'ok':
      same<typeof result.output, { text: string }>(true);
      return result.output.text;
    case 'error':
      same<typeof result.error, ResultError>(true);
      return result.error.code;
    case 'paused':
      same<typeof result.pending, readonly PendingItem[]>(true);
      return `${result.pending.length}`;
    case 'stopped':
      same<typeof result.reason, string>(true);
      return result.reason;
    case 'cancelled':
      return `${result.reason} ${result.error.message}`;
  }
}

/** The types of a loop reach the result through every way to run it. */
export async function program(rondo: Rondo): Promise<void> {
  describe(await rondo.run(greet, { name: 'Ada' }));
  same<Awaited<ReturnType<typeof greet>>, { text: string }>(true);
  const { text } = await rondo.output(greet, { name: 'Ada', mood: 'glad' }, { key: 'k', session: 's' });
  same<typeof text, string>(true);
  const turn = await rondo.start(greet, { name: 'Ada' });
  describe(await turn.result());
  describe(await rondo.turn(turn.id, greet).result());
  describe(await rondo.resume(turn.id, greet));
  const untyped = await rondo.resume(turn.id);
  if (untyped.status === 'ok') same<typeof untyped.output, unknown>(true);
  for await (const event of turn.events()) same<typeof event.id, string>(true);
  for (const approval of await turn.approvals()) await approval.approve({ by: 'ada' });
  // @ts-expect-error: the name is text.
  await rondo.run(greet, { name: 7 });
  // @ts-expect-error: the mood is one of two.
  await greet({ name: 'Ada', mood: 'angry' });
}

/** A wait returns what the schema of its signal produces. */
export const paid = defineSignal('paid', {
  type: 'object',
  properties: { amount: { type: 'number' } },
  required: ['amount'],
});
export const invoice = defineLoop({
  id: 'invoice',
  input: true,
  output: { type: 'number' },
  run: async (_, scope) => {
    await scope.sleep('3 days');
    const { amount } = await scope.wait(paid);
    same<typeof amount, number>(true);
    // @ts-expect-error: the signal has no such member.
    (await scope.wait(paid)).total;
    return amount;
  },
});

/** A sender gives what the schema of the signal accepts. */
export async function payment(rondo: Rondo, id: string): Promise<void> {
  const turn = rondo.turn(id, invoice);
  await turn.signal(paid, { amount: 5 }, { id: 'delivery-1' });
  await rondo.signal(id, paid, { amount: 5 });
  await turn.signal('paid', { anything: true });
  // @ts-expect-error: the amount is a number.
  await turn.signal(paid, { amount: 'five' });
  same<Awaited<ReturnType<typeof turn.output>>, number>(true);
}

/** An agent accepts a text as its prompt and returns a text. */
export async function conversation(rondo: Rondo): Promise<void> {
  const agent = defineAgent({ id: 'agent', model: 'mock' });
  const { text } = await rondo.output(agent, 'My lamp broke.');
  same<typeof text, string>(true);
  const summary = { type: 'object', properties: { words: { type: 'integer' } }, required: ['words'] } as const;
  const counter = defineAgent({ id: 'counter', model: 'mock', output: summary });
  const { words } = await rondo.output(counter, { prompt: 'Count.' });
  same<typeof words, number>(true);
}

/** What `output` throws tells what happened. */
export function reasonOf(thrown: unknown): string {
  if (thrown instanceof LoopError) return thrown.code;
  if (thrown instanceof TurnPaused) return `${thrown.pending.length} ${thrown.turnId}`;
  return thrown instanceof TurnStopped ? thrown.reason : 'unknown';
}
