/** A tool of the toolbox: checks its input itself, whoever calls it, and asks unless it only reads. */
import type { ApprovalTarget } from '../../protocol/approval.js';
import type { Json } from '../../protocol/json.js';
import { type LoopsTool, type LoopsToolOptions, loopsTool } from '../../protocol/tool.js';
import { checkedInput, type InputSchema } from './input.js';

/** What a tool answers: a JSON object. */
export type Answer = { readonly [name: string]: Json };

/** A tool of the toolbox, whatever it takes. */
export type BoxTool<I> = LoopsTool<I, Answer>;

interface Parts<I> {
  readonly name: string;
  readonly description: string;
  readonly inputSchema: InputSchema<I>;
  execute(input: I, options: LoopsToolOptions): Promise<Answer>;
}

/** A tool that changes nothing: it runs without a question, and again after a crash. */
export function readingTool<I>(parts: Parts<I>): BoxTool<I> {
  const { name, description, inputSchema } = parts;
  return loopsTool<I, Answer>({
    name,
    description,
    inputSchema,
    readOnly: true,
    safety: 'pure',
    execute: async (input, options) => parts.execute(checkedInput(name, inputSchema, input), options),
  });
}

interface ActingParts<I> extends Parts<I> {
  readonly safety: 'once' | 'idempotent';
  /** What a person is asked; throws where there is nothing to ask, as it could not be done. */
  ask(input: I): Promise<string> | string;
  /** What a call acts on right now; undefined for a tool that touches no file. `execute` acts on nothing else. */
  target(input: I): Promise<ApprovalTarget> | undefined;
}

/** A tool that does something: a person sees what, unless the mode says that nobody watches. */
export function actingTool<I>(parts: ActingParts<I>): BoxTool<I> {
  const { name, description, inputSchema, safety } = parts;
  const acting = loopsTool<I, Answer>({
    name,
    description,
    inputSchema,
    readOnly: false,
    safety,
    requestApproval: async (input, { mode }) =>
      mode === 'unsupervised' ? null : parts.ask(checkedInput(name, inputSchema, input)),
    approvalTarget: async (input) => parts.target(checkedInput(name, inputSchema, input)),
    execute: async (input, options) => parts.execute(checkedInput(name, inputSchema, input), options),
  });
  return acting.withApproval('ask');
}
