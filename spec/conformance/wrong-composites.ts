// Realistic mistakes in composites, by the check that must detect them.

import type { Members, MiniLoop, MiniStep } from './mini-definition.js';
import { type Call, type Context, Failure, Mini, type Outcome } from './mini-runtime.js';
import type { Mutant } from './wrong-definitions.js';

/** Continues a composite after a failed step, and fails at the end. */
class Persistent extends Mini {
  override async compose(call: Call, steps: readonly MiniStep[], input: unknown): Promise<unknown> {
    const context: Context = { in: input, done: {} };
    const results: Outcome[] = [];
    for (const [index, step] of steps.entries()) {
      const result = await this.step(call, index, step, context);
      this.bind(context, step, index, result);
      results.push(result);
    }
    if (results.some(({ status }) => status !== 'ok')) throw new Failure('CHILD', 'a step failed');
    return results.at(-1)?.output;
  }
}

export const wrongComposites = {
  /** Independent steps run concurrently. */
  'CMP-01': class extends Mini {
    override async compose(call: Call, steps: readonly MiniStep[], input: unknown): Promise<unknown> {
      if (JSON.stringify(steps).includes('$.done')) return super.compose(call, steps, input);
      const context: Context = { in: input, done: {} };
      const results = await Promise.all(steps.map((step, index) => this.step(call, index, step, context)));
      if (results.some(({ status }) => status !== 'ok')) throw new Failure('CHILD', 'a step failed');
      return results.at(-1)?.output;
    }
  },
  /** Only the first member of a path is read. */
  'CMP-02': class extends Mini {
    override find(path: string, context: Context): unknown {
      return super.find(path.replace(/^(\$\.in\.\w+).*/, '$1'), context);
    }
  },
  /** Results are bound to the index of the step instead of its binding. */
  'CMP-03': class extends Mini {
    override bind(context: Context, _step: MiniStep, index: number, result: Outcome): void {
      context.done[index] = result;
    }
  },
  /** The binding is the output instead of the result. */
  'CMP-04': class extends Mini {
    override bind(context: Context, { outputBinding }: MiniStep, _index: number, { output }: Outcome): void {
      if (outputBinding !== undefined) context.done[outputBinding] = output;
    }
  },
  /** Bindings of one run are visible in the next. */
  'CMP-05': class extends Mini {
    private readonly bound = new Map<string, unknown>();

    override async step(call: Call, index: number, step: MiniStep, context: Context): Promise<Outcome> {
      for (const [name, result] of this.bound) context.done[name] ??= result;
      for (const { outputBinding } of call.loop.composite?.steps ?? []) {
        if (outputBinding !== undefined) context.done[outputBinding] ??= null;
      }
      return super.step(call, index, step, context);
    }
    override bind(context: Context, step: MiniStep, index: number, result: Outcome): void {
      super.bind(context, step, index, result);
      if (step.outputBinding !== undefined) this.bound.set(step.outputBinding, result);
    }
  },
  /** The output is the union of all outputs. */
  'CMP-06': class extends Mini {
    private readonly outputs = new Map<string, Members>();

    override async step(call: Call, index: number, step: MiniStep, context: Context): Promise<Outcome> {
      const result = await super.step(call, index, step, context);
      if (result.status !== 'ok') return result;
      const output = { ...this.outputs.get(call.id), ...Object(result.output) };
      this.outputs.set(call.id, output);
      return { ...result, output };
    }
  },
  /** Later steps run after a failed one. */
  'CMP-07': Persistent,
  /** The frame is opened before the mapping, and stays open if the mapping fails. */
  'CMP-08': class extends Mini {
    private opening: (() => void) | undefined;

    override async step(call: Call, stepIndex: number, step: MiniStep, context: Context): Promise<Outcome> {
      this.opening = () => this.emit(call, 'child.started', { childCallId: 'call-0', loopId: step.loopId, stepIndex });
      return super.step(call, stepIndex, step, context);
    }
    override map(mapping: MiniStep['inputMapping'], context: Context): unknown {
      try {
        return super.map(mapping, context);
      } catch (thrown) {
        this.opening?.();
        throw thrown;
      }
    }
  },
  /** A path is split at its dots. */
  'CMP-09': class extends Mini {
    override find(path: string, context: Context): unknown {
      let value: unknown = { $: context };
      for (const name of path.split('.')) {
        if (!Object.hasOwn(Object(value), name)) throw new Failure('MAPPING', `${path} leads nowhere`);
        value = Object(value)[name];
      }
      return value;
    }
  },
  /** Every call names the root as its parent. */
  'CMP-10': class extends Mini {
    override emit(call: Call, type: string, payload: Members): void {
      const root = (of: Call): Call => (of.parent === undefined ? of : root(of.parent));
      const started = type === 'call.started' && call.parent !== undefined;
      super.emit(call, type, started ? { ...payload, parentCallId: root(call).id } : payload);
    }
  },
  /** The depth of composites is not limited. */
  'CMP-11': class extends Mini {
    override maxDepth = Number.POSITIVE_INFINITY;
  },
  /** The frame is opened before the loop is looked up, and stays open if there is none. */
  'CMP-12': class extends Mini {
    override async step(call: Call, stepIndex: number, step: MiniStep, context: Context): Promise<Outcome> {
      const { loopId } = step;
      if (!this.loops.has(loopId)) this.emit(call, 'child.started', { childCallId: 'call-0', loopId, stepIndex });
      return super.step(call, stepIndex, step, context);
    }
  },
  /** The id of a child consists of its parent and its loop, and is not unique. */
  'CMP-13': class extends Mini {
    override newId(loop: MiniLoop, parent: Call | undefined): string {
      return parent === undefined ? super.newId(loop, parent) : `${parent.id}/${loop.id}`;
    }
  },
  /** Every child.completed names the child that started last. */
  'CMP-14': class extends Mini {
    private newest = '';

    override emit(call: Call, type: string, payload: Members): void {
      const inCode = call.loop.composite?.code !== undefined;
      if (inCode && type === 'child.started') this.newest = String(payload.childCallId);
      super.emit(call, type, inCode && type === 'child.completed' ? { ...payload, childCallId: this.newest } : payload);
    }
  },
} as const satisfies Record<string, Mutant>;
