// Realistic mistakes in definitions and validation, by the check that must detect them.

import { Ajv } from 'ajv';
import { Ajv2020 } from 'ajv/dist/2020.js';
import { isMembers, KINDS, type Members } from './mini-definition.js';
import { type Call, type Codes, Mini, type Outcome, type Tools } from './mini-runtime.js';
import { compiler, type Schema, type Validator } from './mini-schema.js';

const draft07 = compiler(new Ajv({ strict: false }));
const filling = compiler(new Ajv2020({ strict: false, useDefaults: true }));

export type Mutant = new (tools: Tools, codes: Codes) => Mini;

/** Returns a registry that alters a definition before it validates it. */
function altering(alter: (definition: Members) => Members): Mutant {
  return class extends Mini {
    override register(definition: unknown): void {
      super.register(isMembers(definition) ? alter(definition) : definition);
    }
  };
}

/** Returns a registry that refuses valid definitions. */
function refusing(isRefused: (definition: Members) => boolean): Mutant {
  return class extends Mini {
    override problemOf(definition: Members): string | undefined {
      return super.problemOf(definition) ?? (isRefused(definition) ? 'refused without need' : undefined);
    }
  };
}

const known = new Set([
  ...['id', 'name', 'description', 'version', 'inputSchema', 'outputSchema', 'kind', 'prompt', 'composite', 'tool'],
  ...['backend', 'policy', 'metadata'],
]);

export const wrongDefinitions = {
  /** A backend is required although it is optional. */
  'DEF-01': refusing(({ kind, backend }) => kind === 'prompt' && backend === undefined),
  /** A missing name is taken from the id. */
  'DEF-02': altering((definition) => ({ name: definition.id, ...definition })),
  /** The last registration wins, but composites call the first one. */
  'DEF-03': class extends Mini {
    private readonly firsts = new Map<string, Call['loop']>();

    override register(definition: unknown): void {
      if (isMembers(definition)) this.loops.delete(String(definition.id));
      super.register(definition);
      for (const [id, loop] of this.loops) if (!this.firsts.has(id)) this.firsts.set(id, loop);
    }
    override runFramed(call: Call, index: number, loop: Call['loop'], input: unknown): Promise<Outcome> {
      return super.runFramed(call, index, this.firsts.get(loop.id) ?? loop, input);
    }
  },
  /** Any text that begins with a number is a version. */
  'DEF-04': class extends Mini {
    override isVersion(version: unknown): boolean {
      return Number.parseInt(String(version), 10) >= 0;
    }
  },
  /** An unknown kind is treated as a tool. */
  'DEF-05': altering((definition) => {
    const { kind } = definition;
    return typeof kind === 'string' && !KINDS.some((each) => each === kind)
      ? { ...definition, kind: 'tool' }
      : definition;
  }),
  /** The first existing body runs, whatever the kind. */
  'DEF-06': class extends Mini {
    override bodyOf(definition: Members): string {
      return KINDS.find((kind) => isMembers(definition[kind])) ?? super.bodyOf(definition);
    }
  },
  /** A tool without a body is an echo. */
  'DEF-07': altering((definition) =>
    definition.kind === 'tool' && !KINDS.some((kind) => kind in definition)
      ? { ...definition, tool: { use: 'echo' } }
      : definition,
  ),
  /** The validator supports an older draft only. */
  'DEF-08': class extends Mini {
    override compile(schema: Schema): Validator {
      const { $schema, ...rest } = Object(schema);
      return draft07(typeof schema === 'boolean' ? schema : rest);
    }
  },
  /** The read-back omits metadata. */
  'DEF-09': class extends Mini {
    override definition(id: string): unknown {
      const { metadata, ...rest } = Object(super.definition(id));
      return rest;
    }
  },
  /** Schemas are compiled at first use, and their errors are thrown. */
  'DEF-10': class extends Mini {
    override schemaProblem(schema: unknown): string | undefined {
      return typeof schema === 'boolean' || isMembers(schema) ? undefined : super.schemaProblem(schema);
    }
    override async call(call: Call, input: unknown): Promise<Outcome> {
      for (const schema of [call.loop.inputSchema, call.loop.outputSchema]) this.compile(schema);
      return super.call(call, input);
    }
  },
  /** Unknown members are refused. */
  'DEF-11': refusing((definition) => Object.keys(definition).some((member) => !known.has(member))),
  /** The read-back returns schemas that the validator has changed. */
  'DEF-12': class extends Mini {
    override definition(id: string): unknown {
      const definition = Object(super.definition(id));
      return { ...definition, inputSchema: { ...definition.inputSchema, $schema: 'draft2020' } };
    }
  },
  /** A name of another type is converted to a string. */
  'DEF-13': altering((definition) =>
    definition.name === undefined ? definition : { ...definition, name: String(definition.name) },
  ),
  /** A missing mapping is replaced by an empty one. */
  'DEF-14': class extends Mini {
    override stepProblem(step: unknown): string | undefined {
      return super.stepProblem(isMembers(step) ? { inputMapping: {}, ...step } : step);
    }
    override map(
      mapping: { readonly [member: string]: string } | undefined,
      context: Parameters<Mini['map']>[1],
    ): unknown {
      return super.map(mapping ?? {}, context);
    }
  },
  /** The newest version runs, but call.started names the first. */
  'DEF-15': class extends Mini {
    private readonly announced = new Map<string, string>();

    override register(definition: unknown): void {
      const old = isMembers(definition) ? this.loops.get(String(definition.id)) : undefined;
      if (isMembers(definition) && old !== undefined && old.version !== definition.version) {
        this.announced.set(old.id, this.announced.get(old.id) ?? old.version);
        this.loops.delete(old.id);
      }
      super.register(definition);
    }
    override emit(call: Call, type: string, payload: Members): void {
      const loopVersion = this.announced.get(call.loop.id) ?? payload.loopVersion;
      super.emit(call, type, type === 'call.started' ? { ...payload, loopVersion } : payload);
    }
  },
  /** Member names are case-insensitive. */
  'DEF-16': altering((definition) => {
    const lower = new Map([...known].map((member) => [member.toLowerCase(), member]));
    const named = Object.entries(definition).map(([member, value]) => [
      lower.get(member.toLowerCase()) ?? member,
      value,
    ]);
    return Object.fromEntries(named);
  }),
} as const satisfies Record<string, Mutant>;

export const wrongValidation = {
  /** The result of the input validation is used only after the body has run. */
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
  /** The input is reported as validated even if it is invalid. */
  'VAL-02': class extends Mini {
    override checkInput(call: Call, input: unknown): void {
      this.emit(call, 'call.input.validated', { durationMs: 0 });
      this.validate(call.loop.inputSchema, input, 'INPUT');
    }
  },
  /** An invalid output is returned together with the error. */
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
  /** The output is reported as validated even if it is invalid. */
  'VAL-04': class extends Mini {
    override checkOutput(call: Call, output: unknown): void {
      this.emit(call, 'call.output.validated', { durationMs: 0 });
      this.validate(call.loop.outputSchema, output, 'OUTPUT');
    }
  },
  /** The outputs of children are not validated. */
  'VAL-05': class extends Mini {
    override checkOutput(call: Call, output: unknown): void {
      if (call.parent === undefined) super.checkOutput(call, output);
      else this.emit(call, 'call.output.validated', { durationMs: 0 });
    }
  },
  /** The validator adds defaults to the caller's object. */
  'VAL-06': class extends Mini {
    override compile(schema: Schema): Validator {
      return filling(schema);
    }
    override copyInput(input: unknown): unknown {
      return input;
    }
  },
  /** Boolean schemas are refused. */
  'VAL-07': refusing(({ inputSchema, outputSchema }) => [inputSchema, outputSchema].includes(true)),
} as const satisfies Record<string, Mutant>;
