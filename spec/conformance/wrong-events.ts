// Realistic mistakes with the lifecycle and the events, each named by the check that must notice it.

import type { LsemResult, SuiteToolContext } from '../../src/conformance/driver.js';
import type { TraceEvent } from '../../src/protocol/trace.js';
import { isMembers, type Members, type MiniLoop } from './mini-definition.js';
import { type Call, Mini, type Outcome } from './mini-runtime.js';
import type { Mutant } from './wrong-definitions.js';

/** A runtime that writes another payload for one type. */
function rewriting(type: string, rewrite: (payload: Members, call: Call) => Members): Mutant {
  return class extends Mini {
    override emit(call: Call, emitted: string, payload: Members): void {
      super.emit(call, emitted, emitted === type ? rewrite(payload, call) : payload);
    }
  };
}

/** A runtime that leaves events out. */
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
  /** What the backend used is told when everything is done. */
  'LIF-01': class extends Mini {
    private readonly held = new Map<string, Members>();

    override emit(call: Call, type: string, payload: Members): void {
      if (type === 'call.backend.responded') this.held.set(call.id, payload);
      else super.emit(call, type, payload);
      const held = this.held.get(call.id);
      if (type === 'call.output.validated' && held !== undefined) super.emit(call, 'call.backend.responded', held);
    }
  },
  /** An open schema needs no validation, so a tool call skips the event. */
  'LIF-02': omitting(({ loop }, type) => loop.kind === 'tool' && type === 'call.output.validated'),
  /** The last child validated the output already. */
  'LIF-03': omitting(({ loop }, type) => loop.kind === 'composite' && type === 'call.output.validated'),
  /** The response is reported in a finally. */
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
  /** The return is reported in a finally. */
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
  /** A line is logged when the call is over. */
  'LIF-06': class extends Mini {
    override async call(call: Call, input: unknown): Promise<Outcome> {
      const outcome = await super.call(call, input);
      if (call.parent === undefined) setTimeout(() => this.emit(call, 'log', { level: 'debug', message: 'over' }));
      return outcome;
    }
  },
  /** The backend is looked up before there is a call to fail. */
  'LIF-07': class extends Mini {
    override async run(loopId: string, input: unknown, onEvent?: (event: TraceEvent) => void): Promise<LsemResult> {
      if (this.loops.get(loopId)?.backend?.is === 'nobody') throw new Error('there is no such backend');
      return super.run(loopId, input, onEvent);
    }
  },
  /** The call is announced before its loop is looked up. */
  'LIF-08': class extends Mini {
    override async run(loopId: string, input: unknown, onEvent?: (event: TraceEvent) => void): Promise<LsemResult> {
      const ts = new Date().toISOString();
      const payload = { loopId, loopVersion: '0.0.0' };
      if (!this.loops.has(loopId)) onEvent?.({ callId: 'call-0', ts, type: 'call.started', payload });
      return super.run(loopId, input, onEvent);
    }
  },
  /** Children are traced lightly. */
  'LIF-09': omitting(({ parent }, type) => parent !== undefined && type.endsWith('.validated')),
  /** A child that has ended is done, however it ended. */
  'LIF-10': rewriting('child.completed', ({ childCallId }) => ({ childCallId, status: 'done' })),
  /** A tool that is not there returns at once. */
  'LIF-11': class extends Mini {
    override async use(call: Call, toolName: string, input: unknown): Promise<unknown> {
      if (!this.tools.has(toolName)) this.emit(call, 'call.tool.returned', { durationMs: 0 });
      return super.use(call, toolName, input);
    }
  },
  /** What a body in code does outside of a loop is told as if it were a tool. */
  'LIF-12': class extends Mini {
    override async act(call: Call, name: string, perform: () => unknown): Promise<unknown> {
      this.emit(call, 'call.tool.invoked', { toolName: name });
      const done = await perform();
      this.emit(call, 'call.tool.returned', { durationMs: 0 });
      return done;
    }
  },
  /** An agent asks its model within its own call. */
  'LIF-13': class extends Mini {
    override async converse(call: Call, loopIds: readonly string[]): Promise<unknown> {
      await this.ask(call, 'What next?');
      await this.codeScope(call).all?.(loopIds.map((loopId) => ({ loopId, input: {} })));
      return { text: 'done' };
    }
  },
} as const satisfies Record<string, Mutant>;

export const wrongTrace = {
  /** What a body logs is passed on as it is, without a time. */
  'TRC-01': class extends Mini {
    override emit(call: Call, type: string, payload: Members): void {
      if (type !== 'log') super.emit(call, type, payload);
      else call.send({ callId: call.id, type, payload } as unknown as TraceEvent);
    }
  },
  /** The time is written for people. */
  'TRC-02': class extends Mini {
    override stamp(call: Call): string {
      return new Date(super.stamp(call)).toUTCString();
    }
  },
  /** Ids are short and come round again. */
  'TRC-03': class extends Mini {
    override newId(loop: MiniLoop, parent: Call | undefined): string {
      super.newId(loop, parent);
      return `call-${this.calls % 256}`;
    }
  },
  /** The version is told for children only. */
  'TRC-04': rewriting('call.started', (payload, { parent }) =>
    parent === undefined ? without('loopVersion')(payload) : payload,
  ),
  /** The subtraction is the wrong way round. */
  'TRC-05': rewriting('call.input.validated', ({ durationMs }) => ({ durationMs: -1 - Number(durationMs) })),
  /** The model is what the definition says, not what answers. */
  'TRC-06': rewriting('call.backend.requested', (payload, { loop }) => ({ ...payload, model: loop.backend?.model })),
  /** A count is left out. */
  'TRC-07': rewriting('call.backend.responded', without('outputTokens')),
  /** The tool is named under another member. */
  'TRC-08': rewriting('call.tool.invoked', ({ toolName }) => ({ implementation: toolName })),
  /** A duration is a text. */
  'TRC-09': rewriting('call.tool.returned', ({ durationMs }) => ({ durationMs: `${durationMs}ms` })),
  /** The child's id is not yet known when its frame opens. */
  'TRC-10': rewriting('child.started', without('childCallId')),
  /** The frame is closed under the id of the parent. */
  'TRC-11': rewriting('child.completed', (payload, { id }) => ({ ...payload, childCallId: id })),
  /** The total is told under another name. */
  'TRC-12': rewriting('call.completed', ({ totalDurationMs }) => ({ durationMs: totalDurationMs })),
  /** What a tool throws has no code. */
  'TRC-13': rewriting('call.errored', (payload) => (payload.code === 'TOOL' ? without('code')(payload) : payload)),
  /** Log lines go to the root. */
  'TRC-14': class extends Mini {
    override emit(call: Call, type: string, payload: Members): void {
      super.emit(type === 'log' ? rootOf(call) : call, type, payload);
    }
  },
  /** Only the types of the table are let through. */
  'TRC-15': class extends Mini {
    override voice(call: Call): SuiteToolContext {
      const emit = (type: string): void => {
        throw new Error(`${type} is not a type of event`);
      };
      return { ...super.voice(call), emit };
    }
  },
  /** A body may emit whatever it likes. */
  'TRC-16': class extends Mini {
    override voice(call: Call): SuiteToolContext {
      return { ...super.voice(call), emit: (type, payload) => this.emit(call, type, payload as Members) };
    }
  },
  /** The trace of the result is gathered call by call. */
  'TRC-17': class extends Mini {
    override async run(loopId: string, input: unknown, onEvent?: (event: TraceEvent) => void): Promise<LsemResult> {
      const result = await super.run(loopId, input, onEvent);
      return { ...result, trace: [...result.trace].sort((a, b) => (a.callId < b.callId ? -1 : 1)) };
    }
  },
  /** A composite that fails hands out what it had. */
  'TRC-18': class extends Mini {
    override async call(call: Call, input: unknown): Promise<Outcome> {
      const outcome = await super.call(call, input);
      return isMembers(outcome.error) && outcome.error.code === 'CHILD' ? { ...outcome, output: {} } : outcome;
    }
  },
  /** Tokens are told for roots only. */
  'TRC-19': rewriting('call.backend.responded', (payload, { parent }) =>
    parent === undefined ? payload : without('inputTokens')(payload),
  ),
  /** Children run where the clock is a second ahead. */
  'TRC-20': class extends Mini {
    override stamp(call: Call): string {
      const ahead = call.parent === undefined ? 0 : 1000;
      return new Date(Date.parse(super.stamp(call)) + ahead).toISOString();
    }
  },
  /** An event of the runtime's own takes a name among LSEM's. */
  'TRC-21': class extends Mini {
    override checkInput(call: Call, input: unknown): void {
      this.emit(call, 'call.queued', {});
      super.checkInput(call, input);
    }
  },
  /** Of a system prompt the tokens are counted, of the rest the characters. */
  'TRC-22': class extends Mini {
    override promptLength(prompt: string, system: string): number {
      return prompt.length + Math.ceil(system.length / 4);
    }
  },
} as const satisfies Record<string, Mutant>;
