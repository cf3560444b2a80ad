/** Times as text. Making one costs more than most of what it is put into, and most share theirs with the one before. */

let lastTime = Number.NaN;
let lastText = '';

/** ISO 8601, UTC. */
export function isoTime(at: number): string {
  if (at !== lastTime) {
    lastText = new Date(at).toISOString();
    lastTime = at;
  }
  return lastText;
}
