// How often statistical tests repeat: completely in `npm run proof`, a twentieth of that elsewhere.

/** True in `npm run proof`, which runs everything at full length. */
export const isProof = process.env.RONDO_PROOF === '1';

/** Returns the value of a variable of the environment, or the number of repetitions for this run. */
export function repetitions(complete: number, variable?: string): number {
  const given = variable === undefined ? undefined : process.env[variable];
  if (given !== undefined) return Number(given);
  return isProof ? complete : Math.ceil(complete / 20);
}
