// Realistic mistakes with definitions and with validation, each named by the check that must notice it.

import { Ajv } from 'ajv';
import { Ajv2020 } from 'ajv/dist/2020.js';
import { isMembers, KINDS, type Members } from './mini-definition.js';
import { type Call, type Codes, Mini, type Outcome, type Tools } from './mini-runtime.js';
import { compiler, type Fault, type Schema } from './mini-schema.js';

const draft07 = compiler(new Ajv({ strict: false }));
const filling = compiler(new Ajv2020({ strict: false, useDefaults: true }));

export type Mutant = new (tools: Tools, codes: Codes) => Mini;

/** A registry that changes a definition before it looks at it. */
function mending(mend: (given: Members) => Members): Mutant {
  return class extends Mini {
    override register(given: unknown): void {
      super.register(isMembers(given) ? mend(given) : given);
    }
  };
}

/** A registry that finds more to refuse than there is. */
function refusing(flaw: (given: Members) => boolean): Mutant {
  return class extends Mini {
    override flawOf(given: Members): string | undefined {
      return super.flawOf(given) ?? (flaw(given) ? 'too much asked' : undefined);
    }
  };
}

const known = new Set([
  ...['id', 'name', 'description', 'version', 'inputSchema', 'outputSchema', 'kind', 'prompt', 'composite', 'tool'],
  ...['backend', 'policy', 'metadata'],
]);

export const wrongDefinitions = {
  /** The default backend is demanded although it is optional. */
  'DEF-01': refusing(({ kind, backend }) => kind === 'prompt' && backend === undefined),
  /** A missing name is taken from the id. */
  'DEF-02': mending((given) => ({ name: given.id, ...given })),
  /** The last registration wins, but what was there first is what composites call. */
  'DEF-03': class extends Mini {
    private readonly firsts = new Map<string, Call['loop']>();

    override register(given: unknown): void {
      if (isMembers(given)) this.loops.delete(String(given.id));
      super.register(given);
      for (const [id, loop] of this.loops) if (!this.firsts.has(id)) this.firsts.set(id, loop);
    }
    override framed(call: Call, index: number, loop: Call['loop'], input: unknown): Promise<Outcome> {
      return super.framed(call, index, this.firsts.get(loop.id) ?? loop, input);
    }
  },
  /** Anything that begins with a number is a version. */
  'DEF-04': class extends Mini {
    override isVersion(version: unknown): boolean {
      return Number.parseInt(String(version), 10) >= 0;
    }
  },
  /** A kind that is not known falls through to the last branch of a switch. */
  'DEF-05': mending((given) => {
    const { kind } = given;
    return typeof kind === 'string' && !KINDS.some((each) => each === kind) ? { ...given, kind: 'tool' } : given;
  }),
  /** The first body that is there is the one that runs. */
  'DEF-06': class extends Mini {
    override bodyOf(given: Members): string {
      return KINDS.find((kind) => isMembers(given[kind])) ?? super.bodyOf(given);
    }
  },
  /** A tool without a body is an echo. */
  'DEF-07': mending((given) =>
    given.kind === 'tool' && !KINDS.some((kind) => kind in given) ? { ...given, tool: { use: 'echo' } } : given,
  ),
  /** The validator's default build, which is for an older draft. */
  'DEF-08': class extends Mini {
    override compile(schema: Schema): Fault {
      const { $schema, ...rest } = Object(schema);
      return draft07(typeof schema === 'boolean' ? schema : rest);
    }
  },
  /** The read-back knows only the members that the runtime itself needs. */
  'DEF-09': class extends Mini {
    override definition(id: string): unknown {
      const { metadata, ...rest } = Object(super.definition(id));
      return rest;
    }
  },
  /** Schemas are compiled when they are first used, outside of what becomes call.errored. */
  'DEF-10': class extends Mini {
    override schemaFlaw(schema: unknown): string | undefined {
      return typeof schema === 'boolean' || isMembers(schema) ? undefined : super.schemaFlaw(schema);
    }
    override async call(call: Call, input: unknown): Promise<Outcome> {
      for (const schema of [call.loop.inputSchema, call.loop.outputSchema]) this.compile(schema);
      return super.call(call, input);
    }
  },
  /** Unknown members are taken for slips. */
  'DEF-11': refusing((given) => Object.keys(given).some((member) => !known.has(member))),
  /** The read-back shows the schemas as the validator understood them. */
  'DEF-12': class extends Mini {
    override definition(id: string): unknown {
      const definition = Object(super.definition(id));
      return { ...definition, inputSchema: { ...definition.inputSchema, $schema: 'draft2020' } };
    }
  },
  /** What is no text is made one. */
  'DEF-13': mending((given) => (given.name === undefined ? given : { ...given, name: String(given.name) })),
  /** A step without a mapping gets an empty one. */
  'DEF-14': class extends Mini {
    override stepFlaw(step: unknown): string | undefined {
      return super.stepFlaw(isMembers(step) ? { inputMapping: {}, ...step } : step);
    }
    override map(
      mapping: { readonly [member: string]: string } | undefined,
      context: Parameters<Mini['map']>[1],
    ): unknown {
      return super.map(mapping ?? {}, context);
    }
  },
  /** Each version is kept, the newest runs, and what is announced is the first. */
  'DEF-15': class extends Mini {
    private readonly announced = new Map<string, string>();

    override register(given: unknown): void {
      const old = isMembers(given) ? this.loops.get(String(given.id)) : undefined;
      if (isMembers(given) && old !== undefined && old.version !== given.version) {
        this.announced.set(old.id, this.announced.get(old.id) ?? old.version);
        this.loops.delete(old.id);
      }
      super.register(given);
    }
    override emit(call: Call, type: string, payload: Members): void {
      const loopVersion = this.announced.get(call.loop.id) ?? payload.loopVersion;
      super.emit(call, type, type === 'call.started' ? { ...payload, loopVersion } : payload);
    }
  },
  /** The names of members are read without regard to case. */
  'DEF-16': mending((given) => {
    const lower = new Map([...known].map((member) => [member.toLowerCase(), member]));
    const named = Object.entries(given).map(([member, value]) => [lower.get(member.toLowerCase()) ?? member, value]);
    return Object.fromEntries(named);
  }),
} as const satisfies Record<string, Mutant>;

export const wrongValidation = {
  /** The verdict on the input is looked at when the body is done. */
  'VAL-01': class extends Mini {
    private readonly late = new Map<string, unknown>();

    override checkInput(call: Call, input: unknown): void {
      try {
        super.checkInput(call, input);
      } catch (thrown) {
        this.late.set(call.id, thrown);
      }
    }
    override checkOutput(call: Call, output: unknown): void {
      if (this.late.has(call.id)) throw this.late.get(call.id);
      super.checkOutput(call, output);
    }
  },
  /** The input is reported as validated when the validation is done, whatever it found. */
  'VAL-02': class extends Mini {
    override checkInput(call: Call, input: unknown): void {
      this.emit(call, 'call.input.validated', { durationMs: 0 });
      this.validate(call.loop.inputSchema, input, 'INPUT');
    }
  },
  /** The output is handed out beside the error, for debugging. */
  'VAL-03': class extends Mini {
    private readonly outputs = new Map<string, unknown>();

    override checkOutput(call: Call, output: unknown): void {
      this.outputs.set(call.id, output);
      super.checkOutput(call, output);
      this.outputs.delete(call.id);
    }
    override async call(call: Call, input: unknown): Promise<Outcome> {
      const outcome = await super.call(call, input);
      return this.outputs.has(call.id) ? { ...outcome, output: this.outputs.get(call.id) } : outcome;
    }
  },
  /** The output is reported as validated when the validation is done, whatever it found. */
  'VAL-04': class extends Mini {
    override checkOutput(call: Call, output: unknown): void {
      this.emit(call, 'call.output.validated', { durationMs: 0 });
      this.validate(call.loop.outputSchema, output, 'OUTPUT');
    }
  },
  /** What comes from a child is trusted. */
  'VAL-05': class extends Mini {
    override checkOutput(call: Call, output: unknown): void {
      if (call.parent === undefined) super.checkOutput(call, output);
      else this.emit(call, 'call.output.validated', { durationMs: 0 });
    }
  },
  /** The validator fills defaults into the object of the caller. */
  'VAL-06': class extends Mini {
    override compile(schema: Schema): Fault {
      return filling(schema);
    }
    override take(input: unknown): unknown {
      return input;
    }
  },
  /** A schema is taken to be an object. */
  'VAL-07': refusing(({ inputSchema, outputSchema }) => [inputSchema, outputSchema].includes(true)),
} as const satisfies Record<string, Mutant>;
