// Realistic mistakes in the lifecycle and the events, by the check that must detect them.

import type { LsemResult, SuiteToolContext } from '../../src/conformance/driver.js';
import type { TraceEvent } from '../../src/protocol/trace.js';
import { isMembers, type Members, type MiniLoop } from './mini-definition.js';
import { type Call, Mini, type Outcome } from './mini-runtime.js';
import type { Mutant } from './wrong-definitions.js';

/** Returns a runtime that changes the payload of one event type. */
function rewriting(type: string, rewrite: (payload: Members, call: Call) => Members): Mutant {
  return class extends Mini {
    override emit(call: Call, emitted: string, payload: Members): void {
      super.emit(call, emitted, emitted === type ? rewrite(payload, call) : payload);
    }
  };
}

/** Returns a runtime that omits events. */
function omitting(omits: (call: Call, type: string) => boolean): Mutant {
  return class extends Mini {
    override emit(call: Call, type: string, payload: Members): void {
      if (!omits(call, type)) super.emit(call, type, payload);
    }
  };
}

const without = (member: string) => (payload: Members) =>
  Object.fromEntries(Object.entries(payload).filter(([name]) => name !== member));

const rootOf = (call: Call): Call => (call.parent === undefined ? call : rootOf(call.parent));

export const wrongLifecycle = {
  /** call.backend.responded is emitted after the validation of the output. */
  'LIF-01': class extends Mini {
    private readonly delayed = new Map<string, Members>();

    override emit(call: Call, type: string, payload: Members): void {
      if (type === 'call.backend.responded') this.delayed.set(call.id, payload);
      else super.emit(call, type, payload);
      const delayed = this.delayed.get(call.id);
      if (type === 'call.output.validated' && delayed !== undefined)
        super.emit(call, 'call.backend.responded', delayed);
    }
  },
  /** A tool call omits call.output.validated. */
  'LIF-02': omitting(({ loop }, type) => loop.kind === 'tool' && type === 'call.output.validated'),
  /** A composite omits call.output.validated. */
  'LIF-03': omitting(({ loop }, type) => loop.kind === 'composite' && type === 'call.output.validated'),
  /** A response is reported even if the backend fails. */
  'LIF-04': class extends Mini {
    override async ask(call: Call, prompt: string): Promise<unknown> {
      try {
        return await super.ask(call, prompt);
      } catch (thrown) {
        this.emit(call, 'call.backend.responded', { durationMs: 0, inputTokens: 0, outputTokens: 0 });
        throw thrown;
      }
    }
  },
  /** A return is reported even if the tool fails. */
  'LIF-05': class extends Mini {
    override async use(call: Call, toolName: string, input: unknown): Promise<unknown> {
      try {
        return await super.use(call, toolName, input);
      } catch (thrown) {
        if (this.tools.has(toolName)) this.emit(call, 'call.tool.returned', { durationMs: 0 });
        throw thrown;
      }
    }
  },
  /** A log event is emitted after the end of the call. */
  'LIF-06': class extends Mini {
    override async call(call: Call, input: unknown): Promise<Outcome> {
      const outcome = await super.call(call, input);
      if (call.parent === undefined) setTimeout(() => this.emit(call, 'log', { level: 'debug', message: 'over' }));
      return outcome;
    }
  },
  /** An unknown backend makes `run` throw. */
  'LIF-07': class extends Mini {
    override async run(loopId: string, input: unknown, onEvent?: (event: TraceEvent) => void): Promise<LsemResult> {
      if (this.loops.get(loopId)?.backend?.is === 'unknown') throw new Error('there is no such backend');
      return super.run(loopId, input, onEvent);
    }
  },
  /** call.started is emitted before the loop is looked up. */
  'LIF-08': class extends Mini {
    override async run(loopId: string, input: unknown, onEvent?: (event: TraceEvent) => void): Promise<LsemResult> {
      const ts = new Date().toISOString();
      const payload = { loopId, loopVersion: '0.0.0' };
      if (!this.loops.has(loopId)) onEvent?.({ callId: 'call-0', ts, type: 'call.started', payload });
      return super.run(loopId, input, onEvent);
    }
  },
  /** Children omit the validation events. */
  'LIF-09': omitting(({ parent }, type) => parent !== undefined && type.endsWith('.validated')),
  /** Every child has the same status. */
  'LIF-10': rewriting('child.completed', ({ childCallId }) => ({ childCallId, status: 'done' })),
  /** A call of an unknown tool emits call.tool.returned. */
  'LIF-11': class extends Mini {
    override async use(call: Call, toolName: string, input: unknown): Promise<unknown> {
      if (!this.tools.has(toolName)) this.emit(call, 'call.tool.returned', { durationMs: 0 });
      return super.use(call, toolName, input);
    }
  },
  /** An effect of a body in code emits the events of a tool. */
  'LIF-12': class extends Mini {
    override async performEffect(call: Call, name: string, perform: () => unknown): Promise<unknown> {
      this.emit(call, 'call.tool.invoked', { toolName: name });
      const result = await perform();
      this.emit(call, 'call.tool.returned', { durationMs: 0 });
      return result;
    }
  },
  /** An agent calls its model within its own call. */
  'LIF-13': class extends Mini {
    override async runAgent(call: Call, loopIds: readonly string[]): Promise<unknown> {
      await this.ask(call, 'What next?');
      await this.codeScope(call).all?.(loopIds.map((loopId) => ({ loopId, input: {} })));
      return { text: 'done' };
    }
  },
  /** A plan records its choice as an event of a tool. */
  'LIF-14': class extends Mini {
    override async runPlan(call: Call, loopIds: readonly string[], input: unknown): Promise<unknown> {
      this.emit(call, 'call.tool.invoked', { toolName: 'choose' });
      this.emit(call, 'call.tool.returned', { durationMs: 0 });
      return super.runPlan(call, loopIds, input);
    }
  },
} as const satisfies Record<string, Mutant>;

export const wrongTrace = {
  /** Log events have no timestamp. */
  'TRC-01': class extends Mini {
    override emit(call: Call, type: string, payload: Members): void {
      if (type !== 'log') super.emit(call, type, payload);
      else call.send({ callId: call.id, type, payload } as unknown as TraceEvent);
    }
  },
  /** Timestamps are not ISO 8601. */
  'TRC-02': class extends Mini {
    override stamp(call: Call): string {
      return new Date(super.stamp(call)).toUTCString();
    }
  },
  /** Call ids are reused. */
  'TRC-03': class extends Mini {
    override newId(loop: MiniLoop, parent: Call | undefined): string {
      super.newId(loop, parent);
      return `call-${this.calls % 256}`;
    }
  },
  /** Only children have a loopVersion. */
  'TRC-04': rewriting('call.started', (payload, { parent }) =>
    parent === undefined ? without('loopVersion')(payload) : payload,
  ),
  /** The duration is negative. */
  'TRC-05': rewriting('call.input.validated', ({ durationMs }) => ({ durationMs: -1 - Number(durationMs) })),
  /** The model is that of the definition instead of the one that answers. */
  'TRC-06': rewriting('call.backend.requested', (payload, { loop }) => ({ ...payload, model: loop.backend?.model })),
  /** A token count is missing. */
  'TRC-07': rewriting('call.backend.responded', without('outputTokens')),
  /** toolName has another name. */
  'TRC-08': rewriting('call.tool.invoked', ({ toolName }) => ({ implementation: toolName })),
  /** A duration is a text. */
  'TRC-09': rewriting('call.tool.returned', ({ durationMs }) => ({ durationMs: `${durationMs}ms` })),
  /** child.started has no childCallId. */
  'TRC-10': rewriting('child.started', without('childCallId')),
  /** child.completed has the id of the parent. */
  'TRC-11': rewriting('child.completed', (payload, { id }) => ({ ...payload, childCallId: id })),
  /** totalDurationMs has another name. */
  'TRC-12': rewriting('call.completed', ({ totalDurationMs }) => ({ durationMs: totalDurationMs })),
  /** The error of a tool has no code. */
  'TRC-13': rewriting('call.errored', (payload) => (payload.code === 'TOOL' ? without('code')(payload) : payload)),
  /** Log events are emitted on the root call. */
  'TRC-14': class extends Mini {
    override emit(call: Call, type: string, payload: Members): void {
      super.emit(type === 'log' ? rootOf(call) : call, type, payload);
    }
  },
  /** Vendor event types are refused. */
  'TRC-15': class extends Mini {
    override toolContext(call: Call): SuiteToolContext {
      const emit = (type: string): void => {
        throw new Error(`${type} is not a type of event`);
      };
      return { ...super.toolContext(call), emit };
    }
  },
  /** A body may emit core events. */
  'TRC-16': class extends Mini {
    override toolContext(call: Call): SuiteToolContext {
      return { ...super.toolContext(call), emit: (type, payload) => this.emit(call, type, payload as Members) };
    }
  },
  /** The trace of the result is sorted by call. */
  'TRC-17': class extends Mini {
    override async run(loopId: string, input: unknown, onEvent?: (event: TraceEvent) => void): Promise<LsemResult> {
      const result = await super.run(loopId, input, onEvent);
      return { ...result, trace: [...result.trace].sort((a, b) => (a.callId < b.callId ? -1 : 1)) };
    }
  },
  /** A failed composite has an output. */
  'TRC-18': class extends Mini {
    override async call(call: Call, input: unknown): Promise<Outcome> {
      const outcome = await super.call(call, input);
      return isMembers(outcome.error) && outcome.error.code === 'CHILD' ? { ...outcome, output: {} } : outcome;
    }
  },
  /** Only root calls have inputTokens. */
  'TRC-19': rewriting('call.backend.responded', (payload, { parent }) =>
    parent === undefined ? payload : without('inputTokens')(payload),
  ),
  /** The clock of children is a second ahead. */
  'TRC-20': class extends Mini {
    override stamp(call: Call): string {
      const offsetMs = call.parent === undefined ? 0 : 1000;
      return new Date(Date.parse(super.stamp(call)) + offsetMs).toISOString();
    }
  },
  /** An event of the runtime uses LSEM's namespace. */
  'TRC-21': class extends Mini {
    override checkInput(call: Call, input: unknown): void {
      this.emit(call, 'call.queued', {});
      super.checkInput(call, input);
    }
  },
  /** promptLength adds the tokens of the system prompt to the characters of the prompt. */
  'TRC-22': class extends Mini {
    override promptLength(prompt: string, system: string): number {
      return prompt.length + Math.ceil(system.length / 4);
    }
  },
} as const satisfies Record<string, Mutant>;
