// How often statistical tests repeat: completely in CI, a twentieth of that elsewhere, so that `npm test` stays short.

/** Returns the value of a variable of the environment, or the number of repetitions for this environment. */
export function repetitions(complete: number, variable?: string): number {
  const given = variable === undefined ? undefined : process.env[variable];
  if (given !== undefined) return Number(given);
  return process.env.CI === undefined ? Math.ceil(complete / 20) : complete;
}
