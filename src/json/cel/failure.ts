/** Failures of an evaluation, and the limit of its steps. */

/** Thrown if an expression has no value for its data. `&&`, `||`, `all` and `exists` may not need that value. */
export class CelFailure extends Error {
  override readonly name: string = 'CelFailure';
}

/** Thrown if an evaluation reaches a limit. No operator catches it. */
export class CelLimitFailure extends CelFailure {
  override readonly name = 'CelLimitFailure';
}

/** The maximum number of steps of one evaluation. They take well below a second. */
const MAX_STEPS = 1_000_000;

/** Counts the steps of an evaluation that depend on its data: iterations, compared values and processed text. */
export class StepCounter {
  private remaining = MAX_STEPS;

  /** Counts steps. Throws CelLimitFailure if there are too many. */
  charge(steps: number): void {
    this.remaining -= steps;
    if (this.remaining < 0) throw new CelLimitFailure(`it takes more than ${MAX_STEPS} steps`);
  }
}
