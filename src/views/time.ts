/** Times as text. Making one costs more than most of what it is put into, and most share theirs with the one before. */

let last = Number.NaN;
let text = '';

/** ISO 8601, UTC. */
export function iso(at: number): string {
  if (at !== last) {
    text = new Date(at).toISOString();
    last = at;
  }
  return text;
}
