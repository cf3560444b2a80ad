/** Formats a duration as `4 min 07 s`. @param {number} ms */
export function formatMinutes(ms) {
  const seconds = Math.round(ms / 1000);
  return `${Math.floor(seconds / 60)} min ${String(seconds % 60).padStart(2, '0')} s`;
}
