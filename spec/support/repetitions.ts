// How often statistical tests repeat: completely in `npm run proof`, a part of that elsewhere.

/** True in `npm run proof`, which runs everything at full length. */
export const isProof = process.env.RONDO_PROOF === '1';

/** Returns the number of repetitions for this run; `quick` is that outside of the proof. */
export function repetitions(complete: number, quick = Math.ceil(complete / 20)): number {
  return isProof ? complete : quick;
}
