/**
 * The driver: runs programs, the compiled form of composites, plans and agents. A program is a flat list of
 * instructions, and control flow is a jump to another index. It is the only loop over the steps of a body. Everything
 * that an instruction does goes through the scope, so a replay takes the same path.
 */
import type { Loop, Scope } from '../../protocol/body.js';
import type { Json } from '../../protocol/json.js';

/** The index of the next instruction. The length of the program, or any larger number, ends it. */
export type NextIndex = number | Promise<number>;

/** A call of a loop. `S` is the state of the run that the instructions of the program share. */
export interface CallInstruction<S> {
  readonly kind: 'call';
  /** Returns the loop to call. */
  loopOf(state: S): Loop;
  /** Returns the input of the call. */
  inputOf(state: S, scope: Scope): unknown;
  /** Stores the output of the call. */
  complete(state: S, scope: Scope, output: unknown): NextIndex;
  /** Handles the error of the call, or throws it. `hasStarted` is false if its input could not be built. */
  fail(state: S, scope: Scope, thrown: unknown, hasStarted: boolean): NextIndex;
}

/** A record: a fact that is made once. */
export interface RecordInstruction<S> {
  readonly kind: 'record';
  /** The type of the entry. */
  readonly type: string;
  /** Returns the fact. Not called for a fact that is recorded already. */
  make(state: S): Json;
  /** Stores the recorded fact. */
  accept(state: S, scope: Scope, fact: Json): NextIndex;
}

/** Anything else: a jump, a choice, a wait or a group of concurrent programs. */
export interface StepInstruction<S> {
  readonly kind: 'step';
  run(state: S, scope: Scope): NextIndex;
}

/** One instruction of a program. */
export type Instruction<S> = CallInstruction<S> | RecordInstruction<S> | StepInstruction<S>;

/** The compiled form of a body. */
export type Program<S> = readonly Instruction<S>[];

/** Runs a program to its end. Throws the error of an instruction. */
export async function runProgram<S>(program: Program<S>, state: S, scope: Scope): Promise<void> {
  for (let index = 0; index < program.length; ) {
    const instruction = program[index] as Instruction<S>;
    let next: NextIndex;
    if (instruction.kind === 'step') next = instruction.run(state, scope);
    else if (instruction.kind === 'record') {
      const fact = await scope.record(instruction.type, () => instruction.make(state));
      next = instruction.accept(state, scope, fact);
    } else {
      let hasStarted = false;
      let output: unknown;
      let failure: { readonly thrown: unknown } | undefined;
      // In this function, because an async function of its own would cost as much as the rest of the instruction.
      try {
        const input = instruction.inputOf(state, scope);
        hasStarted = true;
        output = await scope.call(instruction.loopOf(state), input);
      } catch (thrown) {
        failure = { thrown };
      }
      next =
        failure === undefined
          ? instruction.complete(state, scope, output)
          : instruction.fail(state, scope, failure.thrown, hasStarted);
    }
    index = typeof next === 'number' ? next : await next;
  }
}
