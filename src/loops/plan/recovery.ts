/** The `on_error` of blocks: errors of the instructions inside continue elsewhere. */
import type { Scope } from '../../protocol/body.js';
import type { CallInstruction, StepInstruction } from './driver.js';
import type { PlanRun } from './plan-run.js';

/** An instruction of a plan. */
export type PlanInstruction = CallInstruction<PlanRun> | StepInstruction<PlanRun>;

/** Returns an instruction whose errors continue elsewhere. */
export function withRecovery(
  instruction: PlanInstruction,
  recover: (run: PlanRun, scope: Scope, thrown: unknown) => number,
): PlanInstruction {
  if (instruction.kind === 'call') {
    const { loopOf, inputOf, complete, fail } = instruction;
    return {
      kind: 'call',
      loopOf: (run) => loopOf.call(instruction, run),
      inputOf: (run, scope) => inputOf.call(instruction, run, scope),
      complete: (run, scope, output) => complete.call(instruction, run, scope, output),
      fail: (run, scope, thrown, hasStarted) => {
        try {
          return fail.call(instruction, run, scope, thrown, hasStarted);
        } catch (error) {
          return recover(run, scope, error);
        }
      },
    };
  }
  return {
    kind: 'step',
    run: (run, scope) => {
      try {
        const next = instruction.run(run, scope);
        return typeof next === 'number' ? next : next.catch((thrown: unknown) => recover(run, scope, thrown));
      } catch (thrown) {
        return recover(run, scope, thrown);
      }
    },
  };
}
