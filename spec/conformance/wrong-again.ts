// More mistakes, for the checks that have several sides: the part after the dot names the side.

import { Ajv2020 } from 'ajv/dist/2020.js';
import type { LsemResult } from '../../src/conformance/driver.js';
import type { TraceEvent } from '../../src/protocol/trace.js';
import { isMembers, type Members, type MiniStep } from './mini-definition.js';
import { type Call, type Context, Failure, Mini, type Outcome } from './mini-runtime.js';
import { compiler, type Fault, type Schema } from './mini-schema.js';
import type { Mutant } from './wrong-definitions.js';

const coercing = compiler(new Ajv2020({ strict: false, coerceTypes: true }));

export const wrongAgain = {
  /** A newer version takes the place of the one that a call is in. */
  'DEF-15.moving': class extends Mini {
    override register(given: unknown): void {
      const old = isMembers(given) ? this.loops.get(String(given.id)) : undefined;
      if (isMembers(given) && old !== undefined && old.version !== given.version) this.loops.delete(old.id);
      super.register(given);
    }
    override checkOutput(call: Call, output: unknown): void {
      super.checkOutput({ ...call, loop: this.loops.get(call.loop.id) ?? call.loop }, output);
    }
  },
  /** Singular and plural are the same. */
  'DEF-16.plural': class extends Mini {
    override register(given: unknown): void {
      super.register(isMembers(given) && given.tool === undefined ? { ...given, tool: given.tools } : given);
    }
  },
  /** A step's binding is read in any case. */
  'DEF-16.step': class extends Mini {
    override bind(context: Context, step: MiniStep, index: number, result: Outcome): void {
      const loose = (step as { readonly outputbinding?: string }).outputbinding;
      super.bind(context, loose === undefined ? step : { ...step, outputBinding: loose }, index, result);
    }
  },
  /** A schema that cannot be compiled allows everything. */
  'DEF-10.blind': class extends Mini {
    override compile(schema: Schema): Fault {
      try {
        return super.compile(schema);
      } catch {
        return () => undefined;
      }
    }
  },
  /** The tool is started ahead of the verdict, and nobody is told. */
  'VAL-01.silent': class extends Mini {
    override checkInput(call: Call, input: unknown): void {
      super.use({ ...call, send: () => {} }, call.loop.tool?.use ?? '', input).catch(() => {});
      super.checkInput(call, input);
    }
  },
  /** Values are coerced where they lie. */
  'VAL-06.coerced': class extends Mini {
    override compile(schema: Schema): Fault {
      return coercing(schema);
    }
    override take(input: unknown): unknown {
      return input;
    }
  },
  /** The failure of a child is reported where it happened, and once more where it is noticed. */
  'LIF-06.twice': class extends Mini {
    override async call(call: Call, input: unknown): Promise<Outcome> {
      const outcome = await super.call(call, input);
      const again = outcome.status === 'error' && call.parent !== undefined;
      if (again) this.emit(call, 'call.errored', { code: 'AGAIN', message: 'a child failed' });
      return outcome;
    }
  },
  /** A loop that is not there gives a result as if nothing had happened. */
  'LIF-08.hushed': class extends Mini {
    override async run(loopId: string, input: unknown, onEvent?: (event: TraceEvent) => void): Promise<LsemResult> {
      return this.loops.has(loopId) ? super.run(loopId, input, onEvent) : { status: 'ok', output: null, trace: [] };
    }
  },
  /** Events are stamped by two clocks that disagree. */
  'TRC-20.backwards': class extends Mini {
    private stamps = 0;

    override stamp(call: Call): string {
      this.stamps += 1;
      return new Date(Date.parse(super.stamp(call)) - (this.stamps % 2) * 5000).toISOString();
    }
  },
  /** The length is that of the template. */
  'TRC-06.template': class extends Mini {
    override emit(call: Call, type: string, payload: Members): void {
      const length = JSON.stringify(call.loop.prompt?.say ?? '').length;
      super.emit(call, type, type === 'call.backend.requested' ? { ...payload, promptLength: length } : payload);
    }
  },
  /** Every tool has the same name. */
  'TRC-08.same': class extends Mini {
    override emit(call: Call, type: string, payload: Members): void {
      super.emit(call, type, type === 'call.tool.invoked' ? { toolName: 'function' } : payload);
    }
  },
  /** The duration of a validation is written out. */
  'TRC-12.text': class extends Mini {
    override emit(call: Call, type: string, payload: Members): void {
      super.emit(call, type, type === 'call.output.validated' ? { durationMs: '0 ms' } : payload);
    }
  },
  /** A child has no frame on its parent. */
  'TRC-20.unframed': class extends Mini {
    override emit(call: Call, type: string, payload: Members): void {
      const hidden = type.startsWith('child.') && call.parent !== undefined;
      if (!hidden) super.emit(call, type, payload);
    }
  },
  /** The trace is taken before its last event. */
  'TRC-17.short': class extends Mini {
    override async run(loopId: string, input: unknown, onEvent?: (event: TraceEvent) => void): Promise<LsemResult> {
      const result = await super.run(loopId, input, onEvent);
      return { ...result, trace: result.trace.slice(0, -1) };
    }
  },
  /** The events of a child are delivered when it is done. */
  'TRC-20.batched': class extends Mini {
    private readonly held = new Map<string, TraceEvent[]>();

    override begin(loop: Call['loop'], parent: Call | undefined, send: Call['send']): Call {
      const call = super.begin(loop, parent, send);
      if (parent === undefined) return call;
      const events: TraceEvent[] = [];
      this.held.set(call.id, events);
      return { ...call, send: (event) => void events.push(event) };
    }
    override emit(call: Call, type: string, payload: Members): void {
      super.emit(call, type, payload);
      if (type !== 'child.completed') return;
      for (const event of this.held.get(String(payload.childCallId)) ?? []) call.send(event);
    }
  },
  /** A recursion is noticed, but what it had opened is not closed. */
  'CMP-11.thrown': class extends Mini {
    override async call(call: Call, input: unknown): Promise<Outcome> {
      if (call.depth > 20) throw new Failure('DEPTH', 'too deep');
      return super.call(call, input);
    }
  },
} as const satisfies Record<string, Mutant>;
