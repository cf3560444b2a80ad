// Further mistakes, for checks with several aspects. The suffix after the dot names the aspect.

import { Ajv2020 } from 'ajv/dist/2020.js';
import type { LsemResult } from '../../src/conformance/driver.js';
import type { TraceEvent } from '../../src/protocol/trace.js';
import { isMembers, type Members, type MiniStep } from './mini-definition.js';
import { type Call, type Context, Failure, Mini, type Outcome } from './mini-runtime.js';
import { compiler, type Schema, type Validator } from './mini-schema.js';
import type { Mutant } from './wrong-definitions.js';

const coercing = compiler(new Ajv2020({ strict: false, coerceTypes: true }));

export const wrongAgain = {
  /** A newer version replaces the version of a running call. */
  'DEF-15.moving': class extends Mini {
    override register(definition: unknown): void {
      const old = isMembers(definition) ? this.loops.get(String(definition.id)) : undefined;
      if (isMembers(definition) && old !== undefined && old.version !== definition.version) this.loops.delete(old.id);
      super.register(definition);
    }
    override checkOutput(call: Call, output: unknown): void {
      super.checkOutput({ ...call, loop: this.loops.get(call.loop.id) ?? call.loop }, output);
    }
  },
  /** The plural of a member name is accepted. */
  'DEF-16.plural': class extends Mini {
    override register(definition: unknown): void {
      super.register(
        isMembers(definition) && definition.tool === undefined ? { ...definition, tool: definition.tools } : definition,
      );
    }
  },
  /** The name of a step's binding is case-insensitive. */
  'DEF-16.step': class extends Mini {
    override bind(context: Context, step: MiniStep, index: number, result: Outcome): void {
      const loose = (step as { readonly outputbinding?: string }).outputbinding;
      super.bind(context, loose === undefined ? step : { ...step, outputBinding: loose }, index, result);
    }
  },
  /** An invalid schema accepts everything. */
  'DEF-10.blind': class extends Mini {
    override compile(schema: Schema): Validator {
      try {
        return super.compile(schema);
      } catch {
        return () => undefined;
      }
    }
  },
  /** The tool is started before the validation, without events. */
  'VAL-01.silent': class extends Mini {
    override checkInput(call: Call, input: unknown): void {
      super.use({ ...call, send: () => {} }, call.loop.tool?.use ?? '', input).catch(() => {});
      super.checkInput(call, input);
    }
  },
  /** Values are coerced in place. */
  'VAL-06.coerced': class extends Mini {
    override compile(schema: Schema): Validator {
      return coercing(schema);
    }
    override copyInput(input: unknown): unknown {
      return input;
    }
  },
  /** The failure of a child is reported twice. */
  'LIF-06.twice': class extends Mini {
    override async call(call: Call, input: unknown): Promise<Outcome> {
      const outcome = await super.call(call, input);
      const again = outcome.status === 'error' && call.parent !== undefined;
      if (again) this.emit(call, 'call.errored', { code: 'AGAIN', message: 'a child failed' });
      return outcome;
    }
  },
  /** A run of an unknown loop returns a success. */
  'LIF-08.hushed': class extends Mini {
    override async run(loopId: string, input: unknown, onEvent?: (event: TraceEvent) => void): Promise<LsemResult> {
      return this.loops.has(loopId) ? super.run(loopId, input, onEvent) : { status: 'ok', output: null, trace: [] };
    }
  },
  /** Timestamps come from two clocks that disagree. */
  'TRC-20.backwards': class extends Mini {
    private stamps = 0;

    override stamp(call: Call): string {
      this.stamps += 1;
      return new Date(Date.parse(super.stamp(call)) - (this.stamps % 2) * 5000).toISOString();
    }
  },
  /** promptLength is the length of the template. */
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
  /** The duration of a validation is a text. */
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
  /** The trace lacks its last event. */
  'TRC-17.short': class extends Mini {
    override async run(loopId: string, input: unknown, onEvent?: (event: TraceEvent) => void): Promise<LsemResult> {
      const result = await super.run(loopId, input, onEvent);
      return { ...result, trace: result.trace.slice(0, -1) };
    }
  },
  /** The events of a child are delivered when it has ended. */
  'TRC-20.batched': class extends Mini {
    private readonly delayed = new Map<string, TraceEvent[]>();

    override begin(loop: Call['loop'], parent: Call | undefined, send: Call['send']): Call {
      const call = super.begin(loop, parent, send);
      if (parent === undefined) return call;
      const events: TraceEvent[] = [];
      this.delayed.set(call.id, events);
      return { ...call, send: (event) => void events.push(event) };
    }
    override emit(call: Call, type: string, payload: Members): void {
      super.emit(call, type, payload);
      if (type !== 'child.completed') return;
      for (const event of this.delayed.get(String(payload.childCallId)) ?? []) call.send(event);
    }
  },
  /** A recursion is detected, but its open frames are not closed. */
  'CMP-11.thrown': class extends Mini {
    override async call(call: Call, input: unknown): Promise<Outcome> {
      if (call.depth > 20) throw new Failure('DEPTH', 'too deep');
      return super.call(call, input);
    }
  },
} as const satisfies Record<string, Mutant>;
