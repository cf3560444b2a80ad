import type { Backend } from '../../src/loops/model.js';
import type { AgentSpec, LoopDef } from '../../src/protocol/loop.js';
import type { Model, ModelCallOptions, ModelStreamPart } from '../../src/protocol/model.js';
/** One reply: text, thinking, calls of tools; or a function of what was asked. */
export interface Reply {
    readonly text?: string;
    readonly reasoning?: string;
    readonly calls?: readonly (readonly [name: string, args: unknown, id?: string])[];
    readonly usage?: readonly [input: number | undefined, output: number | undefined];
    readonly finish?: string;
    readonly error?: unknown;
}
export type Scripted = Reply | ((call: ModelCallOptions) => Reply);
export declare function partsOf(reply: Reply, nth: number): ModelStreamPart[];
/** A model that answers these replies, one after another, and keeps what it was asked. */
export declare function modelOf(replies: readonly Scripted[], id?: string): Model & {
    readonly asked: ModelCallOptions[];
};
/** A backend of these replies, which goes on where the session stands. */
export declare function told(replies: readonly Scripted[], id?: string): Backend & {
    readonly asked: ModelCallOptions[];
};
/** An agent as a document. */
export declare function agentDef(id: string, spec?: Partial<AgentSpec>, more?: Partial<LoopDef>): LoopDef;
