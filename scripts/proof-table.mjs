// The table of a run of `npm run proof`, for the terminal and for docs/proof.md.

import { formatMinutes } from './format-minutes.mjs';

/** @typedef {{ readonly ok: boolean, readonly ms: number, readonly result: string }} StepResult */
/** @typedef {{ readonly part: string, readonly name: string, readonly result: StepResult }} Row */
/** @typedef {{ commit: string, seed: string, totalMs: number, cores: number, node: string }} Facts */

const MAX_RESULT_CHARS = 160;

/** A result as one cell: a JSON summary without its lists and nested values. @param {string} text */
function cellOf(text) {
  let shown = text;
  if (text.startsWith('{')) {
    /** @type {Record<string, unknown>} */
    const summary = JSON.parse(text);
    const counts = Object.entries(summary).filter(([, value]) => typeof value === 'number');
    const violations = Array.isArray(summary.violations) ? [['violations', summary.violations.length]] : [];
    shown = [...counts, ...violations].map(([name, value]) => `${name} ${value}`).join(', ');
  }
  const cell = shown.replaceAll('|', '/').replaceAll(/\s+/g, ' ');
  return cell.length > MAX_RESULT_CHARS ? `${cell.slice(0, MAX_RESULT_CHARS)}…` : cell;
}

/** @param {readonly Row[]} rows */
export function proofTable(rows) {
  const lines = rows.map(({ part, name, result }) => {
    const verdict = result.ok ? 'passed' : 'FAILED';
    return `| ${part} | \`${name}\` | ${verdict} | ${formatMinutes(result.ms)} | ${cellOf(result.result)} |`;
  });
  return ['| part | step | verdict | time | result |', '|---|---|---|---:|---|', ...lines].join('\n');
}

/** @param {readonly Row[]} rows @param {Facts} facts */
export function proofPage(rows, { commit, seed, totalMs, cores, node }) {
  return `# The last full proof

\`npm run proof\` runs everything that \`npm test\` and CI leave out or shorten: every broken twin, full repetitions, campaigns and attacks, on
both Node lines. This is its table from commit ${commit.slice(0, 10)}, with seed ${seed}, on ${cores} cores and Node ${node.slice(1)}. It took ${formatMinutes(totalMs)}.

${proofTable(rows)}
`;
}
